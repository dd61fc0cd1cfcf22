/// What the end of a step waited for.
#pragma once

#include <cstddef>
#include <vector>

#include "sim/step/replay.hpp"
#include "sim/step/step_report.hpp"

namespace lockstep {

struct CriticalPath {
  std::vector<CriticalPathPart> parts;  ///< of one kind merged, largest first; add up to the step
  std::vector<bool> passes;             ///< by ReplayResult::items: whether it is on the path
  std::size_t last_actor = 0;           ///< whose passes or exchanges the optimiser waited for
};

/// Walks back from the end of the step: each pass started when its message or its rank's previous
/// pass was done, whichever was later. Requires a recorded result.
CriticalPath critical_path(const StepPlan& plan, const ReplayResult& result);

}  // namespace lockstep
