#include "topologies/formats/drawn_fabric.hpp"

#include <algorithm>
#include <cassert>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <numeric>
#include <utility>

namespace lockstep {
namespace {

/// Fills in the levels of switches: cables to the nearest NIC.
void measure_levels(std::vector<GraphVertex>& vertices, const std::vector<GraphCable>& cables) {
  const bool said = std::ranges::any_of(
      vertices, [](const GraphVertex& v) { return !v.is_port() && v.level >= 0; });
  if (said) return;
  std::vector<std::vector<Vertex>> neighbours(vertices.size());
  for (const GraphCable& cable : cables) {
    neighbours[cable.a].push_back(cable.b);
    neighbours[cable.b].push_back(cable.a);
  }
  std::vector<Vertex> queue;
  for (Vertex v = 0; v < vertices.size() && vertices[v].is_port(); ++v) queue.push_back(v);
  for (std::size_t i = 0; i < queue.size(); ++i) {
    for (const Vertex next : neighbours[queue[i]]) {
      if (vertices[next].level >= 0) continue;
      vertices[next].level = vertices[queue[i]].level + 1;
      queue.push_back(next);
    }
  }
}

}  // namespace

std::string words_of(const FabricCarriage& carriage) {
  std::vector<std::string> words;
  if (carriage.routing) {
    words.push_back(
        fmt::format("routing {}", routings()[static_cast<std::size_t>(*carriage.routing)].name));
  }
  if (carriage.switch_latency) {
    words.push_back(fmt::format("{:g} ns per switch", carriage.switch_latency->base_units() * 1e9));
  }
  if (!carriage.transport.empty()) words.push_back("transport " + carriage.transport);
  return fmt::format("{}", fmt::join(words, ", "));
}

DrawnFabric drawn_fabric(ClusterGraph graph, std::string source) {
  std::vector<std::string> hosts;
  hosts.reserve(static_cast<std::size_t>(graph.nodes()));
  for (int node = 0; node < graph.nodes(); ++node) hosts.push_back("node" + std::to_string(node));
  return {.about = {},
          .source = std::move(source),
          .hosts = std::move(hosts),
          .graph = std::move(graph),
          .down = {},
          .assumptions = {}};
}

std::optional<SketchHost> FabricSketch::find_host(std::string_view name) const {
  const auto at = host_by_name_.find(name);
  return at == host_by_name_.end() ? std::nullopt : std::optional(at->second);
}

std::optional<SketchVertex> FabricSketch::find(std::string_view name) const {
  const auto at = vertex_by_name_.find(name);
  return at == vertex_by_name_.end() ? std::nullopt : std::optional(at->second);
}

SketchHost FabricSketch::add_host(std::string name) {
  const auto host = static_cast<SketchHost>(hosts_.size());
  [[maybe_unused]] const bool added = host_by_name_.emplace(name, host).second;
  assert(added);
  hosts_.push_back(std::move(name));
  nics_.push_back(0);
  return host;
}

SketchVertex FabricSketch::add_nic(SketchHost host, std::string name) {
  const auto vertex = static_cast<SketchVertex>(vertices_.size());
  [[maybe_unused]] const bool added = vertex_by_name_.emplace(name, vertex).second;
  assert(added && host < hosts_.size());
  vertices_.push_back({.name = std::move(name),
                       .host = static_cast<int>(host),
                       .nic = nics_[host]++,
                       .level = 0,
                       .group = -1});
  return vertex;
}

SketchVertex FabricSketch::add_switch(std::string name, int level, int group) {
  const auto vertex = static_cast<SketchVertex>(vertices_.size());
  [[maybe_unused]] const bool added = vertex_by_name_.emplace(name, vertex).second;
  assert(added);
  vertices_.push_back(
      {.name = std::move(name), .host = -1, .nic = -1, .level = level, .group = group});
  return vertex;
}

void FabricSketch::add_cable(const GraphCable& cable, bool down) {
  assert(cable.a != cable.b && cable.a < vertices_.size() && cable.b < vertices_.size());
  assert(down || cable.capacity > BytesPerSecond{});
  (down ? down_ : cables_).push_back(cable);
}

DrawnFabric FabricSketch::finish() const {
  std::vector<SketchVertex> order(vertices_.size());
  std::iota(order.begin(), order.end(), SketchVertex{0});
  std::ranges::stable_sort(order, [this](SketchVertex a, SketchVertex b) {
    const Entry &x = vertices_[a], &y = vertices_[b];
    if ((x.host < 0) != (y.host < 0)) return x.host >= 0;
    return std::pair(x.host, x.nic) < std::pair(y.host, y.nic);
  });
  std::vector<Vertex> place(order.size());
  std::vector<GraphVertex> vertices;
  for (const SketchVertex v : order) {
    place[v] = static_cast<Vertex>(vertices.size());
    const Entry& e = vertices_[v];
    vertices.push_back(
        {.name = e.name, .level = e.level, .node = e.host, .nic = e.nic, .group = e.group});
  }
  const auto placed = [&place](std::vector<GraphCable> cables) {
    for (GraphCable& cable : cables) {
      cable.a = place[cable.a];
      cable.b = place[cable.b];
    }
    return cables;
  };
  std::vector<GraphCable> cables = placed(cables_);
  measure_levels(vertices, cables);
  return {.about = {},
          .source = {},
          .hosts = hosts_,
          .graph = ClusterGraph(std::move(vertices), std::move(cables)),
          .down = placed(down_),
          .assumptions = {}};
}

}  // namespace lockstep
