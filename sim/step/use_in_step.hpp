/// What a replayed step moved over the links of its fabric.
#pragma once

#include "models/base/units.hpp"
#include "sim/fabric/fabric_use.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/step/plan.hpp"
#include "sim/step/site.hpp"
#include "sim/step/wiring.hpp"

namespace lockstep {

/// Counted by the network (FlowNetwork::carried) of a replay that has ended after `step`, from its
/// start. Where lane 0 stands for its group links of other lanes show what the like link of lane 0
/// carried (like_links.hpp); links of replicas that were not simulated, and have no like, show
/// nothing. Requires that the wiring is on the scenario's own fabric.
FabricUse use_in_step(const Scenario& scenario, const StepPlan& plan, const FabricLinks& links,
                      const Wiring& wiring, Seconds step);

}  // namespace lockstep
