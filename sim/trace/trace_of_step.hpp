/// A simulated step as a trace of every rank, for peers and for our own replay.
#pragma once

#include "sim/scenario/scenario.hpp"
#include "sim/trace/trace.hpp"

namespace lockstep {

/// What each rank does in a step: compute of the plan's segments, what ranks exchange inside layers
/// as one collective for each segment and axis, of as long a transfer as all of them when alone
/// (the one that moves most between nodes; inside one, an all-reduce among tensor-parallel ranks,
/// an all-gather among context-parallel ones, an all-to-all among those that share experts),
/// pipeline messages, collectives between replicas and of weights that two stages have, the
/// reduction of the gradient norm, the host's part, the optimiser. Every collective waits for the
/// one before it in its group.
///
/// Behind thin leaves the one collective of a segment can take other links than those that it
/// stands for: its algorithm is that of its own size, and keys and values that pass around a
/// context-parallel group are gathered. Groups of 16 that lie on two leaves with 8:1 of their
/// uplinks replay 8 % (tensor) and 19 % (context) short of the step. Requires a scenario from
/// complete_scenario().
Trace trace_of_step(const Scenario& scenario);

}  // namespace lockstep
