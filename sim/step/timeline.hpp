/// A replayed step as slices for a timeline viewer.
#pragma once

#include <vector>

#include "sim/step/critical_path.hpp"
#include "sim/step/replay.hpp"
#include "sim/step/step_report.hpp"

namespace lockstep {

/// Passes, optimiser, pipeline messages and collectives of every actor, sorted by actor, stream and
/// start; slices of one stream do not overlap. Requires a recorded result, and its critical path.
std::vector<TimelineSlice> timeline(const StepPlan& plan, const ReplayResult& result,
                                    const CriticalPath& path);

}  // namespace lockstep
