/// `lockstep run` of a scenario with "run": days to months, with failures and checkpoints.
#pragma once

#include "sim/answer/step_answer.hpp"
#include "sim/scenario/preset_store.hpp"
#include "tools/console/console.hpp"
#include "tools/console/options.hpp"
#include "tools/lockstep/run/campaign_result.hpp"

namespace lockstep {

/// What --trajectories says, else `otherwise`, and how many threads --jobs has for them, else one
/// a core. Throw UsageError.
int trajectories_of(const ParsedOptions& options, int otherwise);
int trajectory_jobs_of(const ParsedOptions& options);

/// `work` and `run` are what the file says.
Exit run_campaign(const PresetStore& presets, const RunWork& work, const WrittenScenario& written,
                  const RunSpec& run, const ParsedOptions& options, Console& console);

}  // namespace lockstep
