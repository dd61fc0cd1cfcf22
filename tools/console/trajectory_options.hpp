/// Options about the simulated trajectories of a run of days to months.
#pragma once

#include "tools/console/options.hpp"

namespace lockstep {

/// What --trajectories says, else `otherwise`, and how many threads --jobs has for them, else one
/// a core. Throw UsageError.
int trajectories_of(const ParsedOptions& options, int otherwise);
int trajectory_jobs_of(const ParsedOptions& options);

}  // namespace lockstep
