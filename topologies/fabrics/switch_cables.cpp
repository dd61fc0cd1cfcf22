#include "topologies/fabrics/switch_cables.hpp"

#include <algorithm>

#include "topologies/fabrics/drawn_fabric.hpp"
#include "topologies/fabrics/fabric_counts.hpp"

namespace lockstep {
namespace {

std::uint32_t cables_of_tree(const FabricCounts& counts) {
  const int below = counts.leaves * counts.leaf_uplinks;
  return static_cast<std::uint32_t>(below + counts.pods * counts.spines * counts.spine_uplinks);
}

std::uint32_t cables_of_graph(const ClusterGraph& graph) {
  const std::span<const GraphVertex> vertices = graph.vertices();
  return static_cast<std::uint32_t>(
      std::ranges::count_if(graph.cables(), [vertices](const GraphCable& cable) {
        return !vertices[cable.a].is_port() && !vertices[cable.b].is_port();
      }));
}

}  // namespace

std::uint32_t switch_cables(const FabricSpec& fabric, int nodes, const NicPorts& ports) {
  if (fabric.kind == FabricKind::ideal) return 0;
  FabricSpec whole = fabric;
  whole.faults.clear();
  if (is_drawn(whole)) {
    return cables_of_graph(*draw_fabric(whole, nodes, ports.count, ports.bandwidth));
  }
  return cables_of_tree(fabric_counts(whole, nodes, ports.count, ports.bandwidth));
}

}  // namespace lockstep
