#include "topologies/analysis/switch_graph.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <utility>

namespace lockstep {

SwitchGraph::SwitchGraph(const ClusterGraph& graph) {
  for (Vertex v = graph.port_count(); v < graph.vertex_count(); ++v) vertex.push_back(v);
  edges.resize(vertex.size());
  below.resize(vertex.size());
  const auto switch_of = [&](Vertex v) { return static_cast<int>(v - graph.port_count()); };
  const auto neighbours = [&](Vertex v) {
    std::vector<Edge> out;
    for (GraphLink i = graph.first_link()[v]; i < graph.first_link()[v + 1]; ++i) {
      const Vertex to = graph.target()[i];
      if (to >= graph.port_count()) out.push_back({switch_of(to), 1});
    }
    std::ranges::sort(out, {}, &Edge::to);
    std::size_t kept = 0;
    for (const Edge& edge : out) {
      if (kept > 0 && out[kept - 1].to == edge.to) {
        ++out[kept - 1].cables;
      } else {
        out[kept++] = edge;
      }
    }
    return std::vector<Edge>(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(kept));
  };
  for (std::size_t s = 0; s < vertex.size(); ++s) edges[s] = neighbours(vertex[s]);

  std::map<std::vector<std::pair<int, int>>, int> known;
  std::vector<int> class_of(graph.port_count());
  for (Vertex nic = 0; nic < graph.port_count(); ++nic) {
    std::vector<Edge> list = neighbours(nic);
    std::vector<std::pair<int, int>> key;
    key.reserve(list.size());
    for (const Edge& edge : list) key.emplace_back(edge.to, edge.cables);
    const auto [at, is_new] = known.emplace(std::move(key), static_cast<int>(classes.size()));
    if (is_new) {
      for (const Edge& edge : list) {
        below[static_cast<std::size_t>(edge.to)].push_back({at->second, edge.cables});
      }
      classes.push_back({{}, std::move(list)});
    }
    classes[static_cast<std::size_t>(at->second)].nics.push_back(nic);
    class_of[nic] = at->second;
  }
  for (const GraphCable& cable : graph.cables()) {
    const auto& v = graph.vertices();
    direct_cables += v[cable.a].is_port() && v[cable.b].is_port() ? 1 : 0;
  }

  hosts_of_class.resize(classes.size());
  std::map<std::vector<int>, std::size_t> known_hosts;
  for (int node = 0; node < graph.nodes(); ++node) {
    std::set<int> of;
    for (int nic = 0; nic < graph.nics(node); ++nic) of.insert(class_of[graph.nic_port(node, nic)]);
    const std::vector<int> key(of.begin(), of.end());
    const auto [at, is_new] = known_hosts.emplace(key, hosts.size());
    if (is_new) {
      for (const int c : key) {
        hosts_of_class[static_cast<std::size_t>(c)].push_back(static_cast<int>(hosts.size()));
      }
      hosts.push_back({{}, key});
    }
    hosts[at->second].nodes.push_back(node);
  }
}

}  // namespace lockstep
