/// Where the time of a plan's candidate goes beside training at full speed, and why one that does
/// not finish does not.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/search/evaluate_plan.hpp"

namespace lockstep {

struct PlanTimePart {
  std::string_view cause;  ///< as JSON has it
  std::string_view words;  ///< "work done again"
  double seconds = 0;
};
/// Most first; without what takes nothing.
std::vector<PlanTimePart> plan_time_lost(const PlanOutcome& outcome);

/// "; its time: 47 % training at full speed, 44 % waiting for machines, data or weights": of a
/// candidate that is too late.
std::string plan_late_words(const PlanOutcome& outcome);

/// ", with 43 % of the work done; their time: 60 % ...; from day 182 on ...". Requires
/// PlanResult::given_up.
std::string plan_given_up_words(const PlanResult& result);

}  // namespace lockstep
