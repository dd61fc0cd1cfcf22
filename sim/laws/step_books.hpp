/// A step looked at from inside: what its plan sends, what its flows move and its links carry, and
/// whose work was done.
#pragma once

#include "sim/laws/law.hpp"
#include "sim/scenario/scenario.hpp"

namespace lockstep {

/// Every flow moves what the plan sends, every link carries what its flows put on it, and none
/// carries more than its capacity allows in the time of the step. Replays every replica on its own.
void hold_bytes(const Scenario& scenario, LawBook& book);

/// The bucket of useful work at the peak of the GPUs that do it is the model's FLOP, and every
/// chunk of every stage sees each micro batch forward once. Replays every replica on its own.
void hold_work(const Scenario& scenario, LawBook& book);

}  // namespace lockstep
