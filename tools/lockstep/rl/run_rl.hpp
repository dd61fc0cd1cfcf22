/// `lockstep run` of a scenario with "rl": a step of reinforcement learning.
#pragma once

#include "sim/answer/step_answer.hpp"
#include "sim/scenario/preset_store.hpp"
#include "sim/scenario/rl_spec.hpp"
#include "tools/console/console.hpp"
#include "tools/console/options.hpp"

namespace lockstep {

/// Simulates the scenario, and prints it. Throws InputError.
Exit run_rl(const RlScenario& scenario, const WrittenScenario& written, const PresetStore& presets,
            const ParsedOptions& options, Console& console);

}  // namespace lockstep
