/// `lockstep run` of a scenario with "jobs": several of them on one fabric.
#pragma once

#include "sim/answer/step_answer.hpp"
#include "sim/scenario/shared_scenario.hpp"
#include "tools/console/console.hpp"
#include "tools/console/options.hpp"

namespace lockstep {

/// Simulates, prints and writes --report. Throws InputError, and UsageError for options of `run`
/// that say nothing about several jobs.
Exit run_shared(const SharedScenario& scenario, const WrittenScenario& written,
                const PresetStore& presets, const ParsedOptions& options, Console& console);

}  // namespace lockstep
