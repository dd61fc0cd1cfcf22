/// `lockstep run` of a scenario with "serving": a table, JSON, a row for each request, a page.
#pragma once

#include "sim/answer/serving_answer.hpp"
#include "sim/scenario/preset_store.hpp"
#include "tools/console/shared_options.hpp"

namespace lockstep {

/// What simulating it takes, from measured loads: 2 us for a request, 0.18 us for a pass of a
/// replica. How many sequences a pass has is taken from passes of 15 ms; right within 2.
Seconds serving_takes(const ServingSpec& spec);

/// Simulates, prints and writes what the options ask for. An interrupt ends the simulation early:
/// what was served by then is printed, and the table says so.
Exit run_serving(ServingSpec spec, const WrittenScenario& written, const PresetStore& presets,
                 const ParsedOptions& options, Console& console);

}  // namespace lockstep
