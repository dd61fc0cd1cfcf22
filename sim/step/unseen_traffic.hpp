/// What a step's answer leaves out of the traffic between nodes: ranks of a replica that diverge.
#pragma once

#include <string>
#include <vector>

#include "sim/scenario/scenario.hpp"
#include "sim/step/plan.hpp"

namespace lockstep {

/// A sentence for each such part of the job; none where no group leaves its NVLink domain. `limits`
/// is what switch_limits() says of the fabric; with nothing in it there is nothing to tell.
std::vector<std::string> unseen_traffic(const Scenario& scenario, const StepPlan& plan,
                                        const std::string& limits);
/// On the fabric that the scenario gives its cluster.
std::vector<std::string> unseen_traffic(const Scenario& scenario, const StepPlan& plan);

}  // namespace lockstep
