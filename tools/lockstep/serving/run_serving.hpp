/// `lockstep run` of a scenario with "serving": a table, JSON, a row for each request, a page.
#pragma once

#include "sim/answer/serving_answer.hpp"
#include "tools/console/shared_options.hpp"

namespace lockstep {

/// Simulates, prints and writes what the options ask for. An interrupt ends the simulation early:
/// what was served by then is printed, and the table says so.
Exit run_serving(ServingSpec spec, const WrittenScenario& written, const ParsedOptions& options,
                 Console& console);

}  // namespace lockstep
