/// `lockstep run` of a scenario with "jobs": several of them on one fabric.
#pragma once

#include "models/base/json_cursor.hpp"
#include "sim/scenario/preset_store.hpp"
#include "tools/console/console.hpp"
#include "tools/console/options.hpp"

namespace lockstep {

/// Simulates, prints and writes --report. Throws InputError, and UsageError for options of `run`
/// that say nothing about several jobs.
Exit run_shared(const JsonCursor& root, const PresetStore& presets, const ParsedOptions& options,
                Console& console);

}  // namespace lockstep
