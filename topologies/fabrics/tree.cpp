// Fat trees, rail-optimised or not, and the ideal switch: those whose routes are arithmetic.
#include <cstdint>
#include <fmt/format.h>

#include "topologies/fabrics/drawing.hpp"
#include "topologies/fabrics/fabric_counts.hpp"
#include "topologies/fabrics/graph_of_fabric.hpp"

namespace lockstep {
namespace {

using Problem = std::optional<FabricProblem>;

/// Whether nodes fit leaves, and units fit pods.
Problem check_fit(const FabricSpec& spec, int nics) {
  if (spec.kind == FabricKind::fat_tree && spec.leaf_ports_down < nics) {
    return FabricProblem{
        "leaf_ports_down", fmt::format("{}", spec.leaf_ports_down),
        fmt::format("at least {}: a fat tree has all NICs of a node on one leaf", nics)};
  }
  if (spec.kind == FabricKind::rail_optimised && spec.pod_leaves % nics != 0) {
    return FabricProblem{
        "pod_leaves", fmt::format("{}", spec.pod_leaves),
        fmt::format("a multiple of {}: a rail-optimised unit has a leaf for every NIC of a node",
                    nics)};
  }
  return {};
}

/// Whether the switches have ports enough to join all leaves.
Problem check_reach(const FabricSpec& spec, int nodes, const FabricCounts& counts) {
  if (counts.leaf_uplinks > 0 && counts.spines == 0) {
    if (spec.levels == 2) {
      return FabricProblem{
          "levels", "2",
          fmt::format("3, or switch_ports of at least {}: {} nodes have {} leaf switches, and a "
                      "spine of {} ports cannot reach them all",
                      counts.leaves, nodes, counts.leaves, spec.switch_ports)};
    }
    return FabricProblem{
        "pod_leaves", fmt::format("{}", counts.pod_leaves),
        fmt::format("fewer, since a spine of {} ports must reach every leaf of the pod and the "
                    "cores at {}:1",
                    spec.switch_ports, spec.spine_oversubscription)};
  }
  if (counts.spine_uplinks > 0 && counts.cores == 0) {
    return FabricProblem{"switch_ports", fmt::format("{}", spec.switch_ports),
                         fmt::format("at least {}, one for each pod, since {} nodes have that many",
                                     counts.pods, nodes)};
  }
  return {};
}

/// Links one way, in wide integers: what 32-bit link numbers have to hold.
std::int64_t links_one_way(std::int64_t nic_ports, const FabricCounts& c) {
  const std::int64_t leaf_links = std::int64_t{c.leaves} * c.leaf_uplinks;
  const std::int64_t spines = std::int64_t{c.pods} * c.spines;
  return spines > kLinksMax ? kLinksMax + 1 : nic_ports + leaf_links + spines * c.spine_uplinks;
}

/// Whether counts stay within what switches have, and what link numbers hold.
Problem check_size(const FabricSpec& spec, std::int64_t nic_ports, const FabricCounts& c) {
  if (c.leaf_uplinks > kPortsMax) {
    return FabricProblem{"leaf_oversubscription", fmt::format("{}", spec.leaf_oversubscription),
                         fmt::format("a leaf of at most {} uplinks", kPortsMax)};
  }
  if (c.spine_uplinks > kPortsMax) {
    return FabricProblem{"spine_oversubscription", fmt::format("{}", spec.spine_oversubscription),
                         fmt::format("a spine of at most {} uplinks", kPortsMax)};
  }
  if (links_one_way(nic_ports, c) > kLinksMax) {
    return FabricProblem{"leaf_ports_down", fmt::format("{}", spec.leaf_ports_down),
                         fmt::format("a fabric of at most {} links one way", kLinksMax)};
  }
  return {};
}

}  // namespace

std::optional<FabricProblem> check_tree(const FabricPlan& plan) {
  if (plan.spec.kind == FabricKind::ideal) return {};
  if (Problem p = check_fit(plan.spec, plan.nics)) return p;
  const FabricCounts counts = fabric_counts(plan.spec, plan.nodes, plan.nics, plan.nic_bandwidth);
  if (Problem p = check_reach(plan.spec, plan.nodes, counts)) return p;
  if (Problem p = check_size(plan.spec, plan.ports(), counts)) return p;
  if (!is_drawn(plan.spec)) return {};
  const std::int64_t rails = plan.spec.kind == FabricKind::rail_only ? plan.nics : 1;
  const std::int64_t switches = counts.leaves + std::int64_t{counts.pods} * counts.spines +
                                std::int64_t{counts.spines} * counts.cores;
  return check_drawing_size("nodes", plan.nodes, switches * rails * plan.spec.planes,
                            links_one_way(plan.ports(), counts) * rails * plan.spec.planes);
}

FabricDrawing draw_tree(const FabricPlan& plan) {
  FabricSpec whole = plan.spec;
  whole.planes = 1;
  whole.faults.clear();
  whole.routing = Routing::ecmp;
  const ClusterGraph graph = graph_of(Fabric(whole, plan.nodes, plan.nics, plan.nic_bandwidth));
  return {.vertices = {graph.vertices().begin(), graph.vertices().end()},
          .cables = {graph.cables().begin(), graph.cables().end()}};
}

}  // namespace lockstep
