#include "topologies/fabrics/graph_of_fabric.hpp"

#include <array>
#include <fmt/format.h>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep {
namespace {

/// Vertices and cables of a fabric with arithmetic routes, and the fabric's names of both ways.
struct Drawing {
  std::vector<GraphVertex> vertices;
  std::vector<GraphCable> cables;
  std::vector<std::array<FabricLink, 2>> links;  ///< of each cable, up and down

  void add(Vertex low, Vertex high, BytesPerSecond capacity, FabricLink up, FabricLink down) {
    cables.push_back({.a = low, .b = high, .capacity = capacity});
    links.push_back({up, down});
  }
};

/// `per_pod` of them to each pod; 0: they are of none.
void add_switches(std::vector<GraphVertex>& vertices, std::string_view what, int level, int count,
                  int per_pod) {
  for (int i = 0; i < count; ++i) {
    vertices.push_back({.name = fmt::format("{} {}", what, i),
                        .level = level,
                        .group = per_pod > 0 ? i / per_pod : -1});
  }
}

Drawing drawing_of(const Fabric& fabric) {
  const FabricCounts& c = fabric.counts();
  Drawing out;
  for (int node = 0; node < fabric.nodes(); ++node) {
    for (int nic = 0; nic < fabric.nics_per_node(); ++nic) {
      out.vertices.push_back(
          {.name = fmt::format("node {} nic {}", node, nic), .level = 0, .node = node, .nic = nic});
    }
  }
  const auto here = [&] { return static_cast<Vertex>(out.vertices.size()); };
  const Vertex leaves = here();
  add_switches(out.vertices, "leaf", 1, c.leaves, c.pod_leaves);
  const Vertex spines = here();
  add_switches(out.vertices, "spine", 2, c.pods * c.spines, c.spines);
  const Vertex cores = here();
  add_switches(out.vertices, "core", 3, c.spines * c.cores, 0);

  for (Vertex port = 0; port < leaves; ++port) {
    const GraphVertex& at = out.vertices[port];
    out.add(port, leaves + static_cast<Vertex>(fabric.leaf_of(at.node, at.nic)),
            fabric.nic_bandwidth(), fabric.nic_up(at.node, at.nic),
            fabric.nic_down(at.node, at.nic));
  }
  for (int l = 0; l < c.leaves; ++l) {
    for (int uplink = 0; uplink < c.leaf_uplinks; ++uplink) {
      const int s = fabric.pod_of(l) * c.spines + uplink / (c.leaf_uplinks / c.spines);
      out.add(leaves + static_cast<Vertex>(l), spines + static_cast<Vertex>(s),
              c.leaf_link_capacity, fabric.leaf_up(l, uplink), fabric.leaf_down(l, uplink));
    }
  }
  for (int spine = 0; spine < c.pods * c.spines; ++spine) {
    const int pod = spine / c.spines, s = spine % c.spines;
    for (int uplink = 0; uplink < c.spine_uplinks; ++uplink) {
      const int core = s * c.cores + uplink / (c.spine_uplinks / c.cores);
      out.add(spines + static_cast<Vertex>(spine), cores + static_cast<Vertex>(core),
              c.spine_link_capacity, fabric.spine_up(pod, s, uplink),
              fabric.spine_down(pod, s, uplink));
    }
  }
  return out;
}

}  // namespace

ClusterGraph graph_of(const Fabric& fabric) {
  if (fabric.is_drawn()) return *fabric.graph();
  Drawing drawing = drawing_of(fabric);
  return {std::move(drawing.vertices), std::move(drawing.cables), drawing.links};
}

}  // namespace lockstep
