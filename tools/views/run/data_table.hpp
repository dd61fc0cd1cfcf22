/// A run's dataset on its way, as text: hops, what the job waits for, storage by the month.
#pragma once

#include <string>

#include "sim/run/data_plan.hpp"
#include "tools/console/table.hpp"

namespace lockstep {

/// "begins after 2.31 days of staging; 3.00 passes over 60.0 TB, of which the nodes' drives hold
/// 40.0 %; the first is held to 81.0 % by storage".
std::string data_words(const DataPlan& plan);
/// Two tables: the hops, and what each tier costs by month until `end`, with sums. `end` counts
/// from the start of staging.
std::string data_text(const DataPlan& plan, Seconds end, const TextStyle& style);

}  // namespace lockstep
