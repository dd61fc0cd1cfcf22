/// What the end of a step waited for.
#pragma once

#include <vector>

#include "sim/step/replay.hpp"
#include "sim/step/step_report.hpp"

namespace lockstep {

/// Walks back from the end of the step: each pass started when its message or its rank's previous
/// pass was done, whichever was later. Parts of one kind are merged, largest first; they add up to
/// the step. Requires a recorded result.
std::vector<CriticalPathPart> critical_path(const StepPlan& plan, const ReplayResult& result);

}  // namespace lockstep
