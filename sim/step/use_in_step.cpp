#include "sim/step/use_in_step.hpp"

#include <numeric>
#include <vector>

#include "sim/fabric/faulty_fabric.hpp"
#include "sim/step/lanes.hpp"

namespace lockstep {
namespace {

/// By fabric link: the one that was simulated for it.
std::vector<FabricLink> stand_ins(const StepPlan& plan, const Fabric& fabric) {
  std::vector<FabricLink> of(fabric.link_count());
  std::iota(of.begin(), of.end(), FabricLink{0});
  const Lanes lanes(plan, fabric);
  if (!lanes.first_stands_for_all()) return of;
  const Placement& placement = lanes.placement();
  const bool has_spines = fabric.counts().leaf_uplinks > 0;
  for (int rank = 0; rank < placement.ranks(); ++rank) {
    RankCoordinates at = placement.coordinates(rank);
    at.tensor = 0;
    const int first = placement.rank(at);
    const int node = placement.node_of(rank), nic = placement.nic_of(rank);
    const int first_node = placement.node_of(first), first_nic = placement.nic_of(first);
    of[fabric.nic_up(node, nic)] = fabric.nic_up(first_node, first_nic);
    of[fabric.nic_down(node, nic)] = fabric.nic_down(first_node, first_nic);
    if (!has_spines) continue;
    const int leaf = fabric.leaf_of(node, nic), first_leaf = fabric.leaf_of(first_node, first_nic);
    of[fabric.leaf_up(leaf, 0)] = fabric.leaf_up(first_leaf, 0);
    of[fabric.leaf_down(leaf, 0)] = fabric.leaf_down(first_leaf, 0);
  }
  return of;
}

}  // namespace

FabricUse use_in_step(const Scenario& scenario, const StepPlan& plan, const FabricLinks& links,
                      const Wiring& wiring, Seconds step) {
  const Fabric& fabric = links.fabric();
  const FlowNetwork& network = wiring.network();
  const std::vector<FabricLink> simulated = stand_ins(plan, fabric);
  std::vector<CarriedLink> carried;
  for (FabricLink link = 0; link < fabric.link_count(); ++link) {
    const LinkIndex known = wiring.known_link(simulated[link]);
    if (known == FabricLinks::kNoLink) continue;
    carried.push_back({fabric.link_name(link), links.capacity(link), network.carried(known)});
  }
  const Fabric whole = without_faults(fabric);
  LinkHealth health;
  if (!scenario.fabric.faults.empty()) health.left = capacity_left(whole, scenario.fabric.faults);
  return use_of_fabric(whole, carried, step, health);
}

}  // namespace lockstep
