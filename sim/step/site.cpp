#include "sim/step/site.hpp"

#include <algorithm>

#include "sim/step/plan.hpp"
#include "topologies/placement.hpp"

namespace lockstep {

Fabric own_fabric(const Scenario& scenario, const StepPlan& plan) {
  const NicPorts ports = nic_ports(scenario.node);
  return {scenario.fabric, std::max(scenario.nodes, Placement{plan.placement}.nodes()), ports.count,
          ports.bandwidth};
}

}  // namespace lockstep
