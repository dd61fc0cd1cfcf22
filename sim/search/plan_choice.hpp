/// Which candidate a plan comes down to.
#pragma once

#include "sim/search/evaluate_plan.hpp"

namespace lockstep {

/// Fills in chances, the front, the choice and the nearest candidate from the samples of those that
/// are possible. The choice is the least by the plan's goal, in the median, of those that keep all
/// limits in the share of samples that is asked for; of equals the first.
void choose(const PlanSpec& spec, PlanReport& report);

}  // namespace lockstep
