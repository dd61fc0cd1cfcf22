/// `lockstep run` of a scenario with "run": days to months, with failures and checkpoints.
#pragma once

#include "sim/answer/step_answer.hpp"
#include "sim/scenario/preset_store.hpp"
#include "tools/console/console.hpp"
#include "tools/console/options.hpp"
#include "tools/views/run/campaign_result.hpp"

namespace lockstep {

/// `work` and `run` are what the file says.
Exit run_campaign(const PresetStore& presets, const RunWork& work, const WrittenScenario& written,
                  const RunSpec& run, const ParsedOptions& options, Console& console);

}  // namespace lockstep
