#include "sim/step/use_in_step.hpp"

#include <vector>

#include "sim/fabric/faulty_fabric.hpp"
#include "sim/step/lanes.hpp"
#include "sim/step/like_links.hpp"

namespace lockstep {

FabricUse use_in_step(const Scenario& scenario, const StepPlan& plan, const FabricLinks& links,
                      const Wiring& wiring, Seconds step) {
  const Fabric& fabric = links.fabric();
  const FlowNetwork& network = wiring.network();
  const std::vector<FabricLink> simulated = simulated_links(Lanes(plan, fabric));
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
