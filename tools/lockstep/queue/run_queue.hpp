/// `lockstep run` of a scenario with "queue": a table, JSON, a row for each job, a page.
#pragma once

#include "sim/answer/queue_answer.hpp"
#include "sim/scenario/preset_store.hpp"
#include "tools/console/shared_options.hpp"

namespace lockstep {

/// Simulates, prints and writes what the options ask for. An interrupt ends the simulation early:
/// what there is by then is printed, and the table says so.
Exit run_queue(QueueSpec spec, const WrittenScenario& written, const PresetStore& presets,
               const ParsedOptions& options, Console& console);

}  // namespace lockstep
