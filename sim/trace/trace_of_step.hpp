/// A simulated step as a trace of every rank, for peers and for our own replay.
#pragma once

#include "sim/scenario/scenario.hpp"
#include "sim/trace/trace.hpp"

namespace lockstep {

/// What each rank does in a step: compute of the plan's segments, what ranks exchange inside layers
/// as one all-reduce for each segment (of as long a transfer; where the ranks of a replica are
/// single GPUs, whose experts are elsewhere, as time), pipeline messages, collectives between
/// replicas and of weights that two stages have, the reduction of the gradient norm, the host's
/// part, the optimiser. Every collective waits for the one before it in its group. Requires a
/// scenario from complete_scenario().
Trace trace_of_step(const Scenario& scenario);

}  // namespace lockstep
