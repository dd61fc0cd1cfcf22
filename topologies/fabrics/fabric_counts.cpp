#include "topologies/fabrics/fabric_counts.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace lockstep {
namespace {

int divide_rounding_up(int a, int b) { return a / b + (a % b != 0 ? 1 : 0); }

/// Links of `link` that carry `total`; a rounding error above a whole number is no further link.
/// Cut off far above what check() lets through, so that absurd specs reach check() at all.
int links_for(BytesPerSecond total, BytesPerSecond link) {
  return static_cast<int>(std::clamp(std::ceil(total / link - 1e-9), 1.0, 1048576.0));
}

/// The fewest switches that share `links` evenly and have ports for them; 0: none do.
template <typename PortsUsed>
int fewest_switches(int links, int switch_ports, PortsUsed ports_used) {
  if (switch_ports == 0) return links;
  for (int switches = 1; switches <= links; ++switches) {
    if (links % switches == 0 && ports_used(links / switches) <= switch_ports) return switches;
  }
  return 0;
}

/// Leaves per pod where the spec leaves them open: a spine then has as many ports down as a leaf.
int pod_leaves_of(const FabricSpec& spec, int nics) {
  if (spec.pod_leaves > 0) return spec.pod_leaves;
  if (spec.kind != FabricKind::rail_optimised) return spec.leaf_ports_down;
  return std::max(1, spec.leaf_ports_down / nics) * nics;
}

}  // namespace

FabricCounts fabric_counts(const FabricSpec& spec, int nodes, int nics_per_node,
                           BytesPerSecond nic_bandwidth) {
  assert(nodes > 0 && nics_per_node > 0 && nic_bandwidth > BytesPerSecond{});
  FabricCounts counts;
  if (spec.kind == FabricKind::ideal) {
    counts.unit_nodes = nodes;
    return counts;
  }
  const bool rails = spec.kind == FabricKind::rail_optimised;
  counts.unit_nodes = rails ? spec.leaf_ports_down : spec.leaf_ports_down / nics_per_node;
  assert(counts.unit_nodes > 0 && "check() refuses a leaf that holds no node");
  counts.leaves = divide_rounding_up(nodes, counts.unit_nodes) * (rails ? nics_per_node : 1);
  const bool three_levels = spec.levels == 3;
  counts.pod_leaves = three_levels ? pod_leaves_of(spec, nics_per_node) : counts.leaves;
  counts.pods = divide_rounding_up(counts.leaves, counts.pod_leaves);
  if (counts.leaves == 1) return counts;

  const BytesPerSecond link =
      spec.link_bandwidth > BytesPerSecond{} ? spec.link_bandwidth : nic_bandwidth;
  const BytesPerSecond upper_link =
      spec.upper_bandwidth > BytesPerSecond{} ? spec.upper_bandwidth : link;
  const int ports_used = rails ? counts.unit_nodes : counts.unit_nodes * nics_per_node;
  const BytesPerSecond leaf_up = ports_used * nic_bandwidth / spec.leaf_oversubscription;
  counts.leaf_uplinks = links_for(leaf_up, link);
  counts.leaf_link_capacity = leaf_up / counts.leaf_uplinks;

  const auto spine_up = [&](int links_per_leaf) {
    return 1.0 * counts.pod_leaves * links_per_leaf * counts.leaf_link_capacity /
           spec.spine_oversubscription;
  };
  const auto spine_ports = [&](int links_per_leaf) {
    const int up = three_levels ? links_for(spine_up(links_per_leaf), upper_link) : 0;
    return 1.0 * counts.pod_leaves * links_per_leaf + up;
  };
  counts.spines = fewest_switches(counts.leaf_uplinks, spec.switch_ports, spine_ports);
  if (counts.pods == 1 || counts.spines == 0) return counts;

  const int links_per_leaf = counts.leaf_uplinks / counts.spines;
  counts.spine_uplinks = links_for(spine_up(links_per_leaf), upper_link);
  counts.spine_link_capacity = spine_up(links_per_leaf) / counts.spine_uplinks;
  counts.cores = fewest_switches(counts.spine_uplinks, spec.switch_ports,
                                 [&](int links) { return 1.0 * counts.pods * links; });
  return counts;
}

}  // namespace lockstep
