/// The training of a step of reinforcement learning in words, for the table and for the page.
#pragma once

#include <string>

#include "sim/rl/rl_step.hpp"

namespace lockstep {

/// "1 x 1 update of 128 samples of 1,312 tokens on average, packed into 6 micro batches: simulated
/// as 144 samples of 1,167 tokens, 3 to a micro batch": what the scenario says, then what its rows
/// were rounded to.
std::string update_words(const RlScenario& s, const RlReport& r);

}  // namespace lockstep
