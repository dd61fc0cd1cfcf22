#include "topologies/formats/canonical_order.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

#include "topologies/infiniband/text_lines.hpp"

namespace lockstep {
namespace {

bool comes_first(const std::string& a, const std::string& b) {
  if (natural_less(a, b)) return true;
  return !natural_less(b, a) && a < b;  // "leaf1" and "leaf01"
}

void sort_cables(std::vector<GraphCable>& cables) {
  for (GraphCable& cable : cables) {
    if (std::tie(cable.a, cable.port_a) < std::tie(cable.b, cable.port_b)) continue;
    std::swap(cable.a, cable.b);
    std::swap(cable.port_a, cable.port_b);
  }
  const auto key = [](const GraphCable& c) {
    return std::tie(c.a, c.port_a, c.b, c.port_b, c.capacity);
  };
  std::ranges::stable_sort(
      cables, [&](const GraphCable& x, const GraphCable& y) { return key(x) < key(y); });
}

}  // namespace

DrawnFabric in_canonical_order(const DrawnFabric& fabric) {
  const ClusterGraph& graph = fabric.graph;
  std::vector<int> hosts(fabric.hosts.size());
  std::iota(hosts.begin(), hosts.end(), 0);
  const auto name_of_host = [&](int h) { return fabric.hosts[static_cast<std::size_t>(h)]; };
  std::ranges::stable_sort(
      hosts, [&](int a, int b) { return comes_first(name_of_host(a), name_of_host(b)); });

  std::vector<Vertex> order;
  const auto layer = [&](Vertex v) {
    const int level = graph.vertices()[v].level;
    return level < 0 ? std::numeric_limits<int>::max() : level;
  };
  const auto sorted_from = [&](std::size_t first) {
    std::sort(order.begin() + static_cast<std::ptrdiff_t>(first), order.end(),
              [&](Vertex a, Vertex b) {
                if (layer(a) != layer(b)) return layer(a) < layer(b);
                return comes_first(graph.vertex_name(a), graph.vertex_name(b));
              });
  };
  for (const int host : hosts) {
    const std::size_t first = order.size();
    for (int nic = 0; nic < graph.nics(host); ++nic) order.push_back(graph.nic_port(host, nic));
    sorted_from(first);
  }
  const std::size_t first_switch = order.size();
  for (Vertex v = graph.port_count(); v < graph.vertex_count(); ++v) order.push_back(v);
  sorted_from(first_switch);

  std::vector<Vertex> place(order.size());
  std::vector<GraphVertex> vertices;
  DrawnFabric out{.about = fabric.about,
                  .source = fabric.source,
                  .hosts = {},
                  .graph = fabric.graph,
                  .down = fabric.down,
                  .assumptions = fabric.assumptions,
                  .carriage = fabric.carriage};
  int node = -1, nic = 0;
  for (const Vertex v : order) {
    place[v] = static_cast<Vertex>(vertices.size());
    GraphVertex vertex = graph.vertices()[v];
    if (vertex.is_port()) {
      nic = !vertices.empty() && graph.vertices()[order[vertices.size() - 1]].node == vertex.node
                ? nic + 1
                : 0;
      node += nic == 0 ? 1 : 0;
      vertex.node = node;
      vertex.nic = nic;
    }
    vertices.push_back(std::move(vertex));
  }
  for (const int host : hosts) out.hosts.push_back(name_of_host(host));
  std::vector<GraphCable> cables(graph.cables().begin(), graph.cables().end());
  for (auto* list : {&cables, &out.down}) {
    for (GraphCable& cable : *list) {
      cable.a = place[cable.a];
      cable.b = place[cable.b];
    }
    sort_cables(*list);
  }
  out.graph = ClusterGraph(std::move(vertices), std::move(cables));
  return out;
}

}  // namespace lockstep
