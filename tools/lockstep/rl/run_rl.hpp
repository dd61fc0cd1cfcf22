/// `lockstep run` of a scenario with "rl": a step of reinforcement learning.
#pragma once

#include <string>

#include "sim/scenario/preset_store.hpp"
#include "tools/console/console.hpp"
#include "tools/console/options.hpp"

namespace lockstep {

/// Simulates the scenario of that file and text, and prints it. Throws InputError.
Exit run_rl(const std::string& file, const std::string& text, const PresetStore& presets,
            const ParsedOptions& options, Console& console);

}  // namespace lockstep
