/// Writes a simulated step as traces that other simulators run.
#pragma once

#include "sim/scenario/scenario.hpp"
#include "tools/console/options.hpp"

namespace lockstep {

/// Whether --chakra or --goal asks for one.
bool exports_trace(const ParsedOptions& options);

/// Adds to what the scenario assumes what such a trace cannot say.
void note_trace(Scenario& scenario);

/// --chakra DIR: DIR/step.R.et for each rank and DIR/comm_groups.json, as ASTRA-sim takes them.
/// --goal FILE: a GOAL schedule for LogGOPSim and ATLAHS. Throws InputError where a file cannot be
/// written or a schedule would be too long.
void export_trace(const ParsedOptions& options, const Scenario& scenario);

}  // namespace lockstep
