#include "topologies/fabrics/switch_cables.hpp"

#include <algorithm>
#include <cmath>

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

/// Cables of that capacity which carry `total`; a rounding error above a whole number is none.
std::int64_t cables_for(BytesPerSecond total, BytesPerSecond cable) {
  return static_cast<std::int64_t>(std::ceil(total / cable - 1e-9));
}

/// Of one plane, and one rail where rails never meet.
IdleCables idle_cables_of_tree(const FabricSpec& tree, int nodes, const NicPorts& ports) {
  const FabricCounts c = fabric_counts(tree, nodes, ports.count, ports.bandwidth);
  if (c.leaves == 1) return {};
  const bool rails = tree.kind == FabricKind::rail_optimised;
  const int unit_leaves = rails ? ports.count : 1;
  // Of a single pod all leaves are its own.
  const std::int64_t pod_nodes = std::int64_t{c.pod_leaves / unit_leaves} * c.unit_nodes;
  IdleCables out;
  out.of = cables_of_tree(c);
  for (int pod = 0; pod < c.pods; ++pod) {
    std::int64_t up = 0, built = 0;
    const std::int64_t end = std::min<std::int64_t>(nodes, (pod + 1) * pod_nodes);
    for (std::int64_t first = pod * pod_nodes; first < end; first += c.unit_nodes) {
      const std::int64_t here = std::min<std::int64_t>(c.unit_nodes, end - first);
      const double leaf_ports = static_cast<double>(here) * (rails ? 1 : ports.count);
      const BytesPerSecond fill = leaf_ports * ports.bandwidth / tree.leaf_oversubscription;
      up += unit_leaves * cables_for(fill, c.leaf_link_capacity);
      built += std::int64_t{unit_leaves} * c.leaf_uplinks;
    }
    out.above_leaves += built - up;
    if (c.spine_uplinks == 0) continue;
    const BytesPerSecond fill =
        static_cast<double>(up) * c.leaf_link_capacity / tree.spine_oversubscription;
    out.above_spines +=
        std::int64_t{c.spines} * c.spine_uplinks - cables_for(fill, c.spine_link_capacity);
  }
  out.capacity = static_cast<double>(out.above_leaves) * c.leaf_link_capacity +
                 static_cast<double>(out.above_spines) * c.spine_link_capacity;
  return out;
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

IdleCables idle_cables(const FabricSpec& fabric, int nodes, const NicPorts& ports) {
  FabricSpec tree = fabric;
  NicPorts joined = ports;
  if (fabric.kind == FabricKind::rail_only) {
    tree.kind = FabricKind::fat_tree;
    joined.count = 1;
  } else if (fabric.kind != FabricKind::fat_tree && fabric.kind != FabricKind::rail_optimised) {
    return {};
  }
  joined.bandwidth = ports.bandwidth / fabric.planes;
  const IdleCables one = idle_cables_of_tree(tree, nodes, joined);
  const std::int64_t copies = std::int64_t{fabric.planes} * (ports.count / joined.count);
  return {.above_leaves = copies * one.above_leaves,
          .above_spines = copies * one.above_spines,
          .of = copies * one.of,
          .capacity = static_cast<double>(copies) * one.capacity};
}

}  // namespace lockstep
