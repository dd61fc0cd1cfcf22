/// Works out how many layers each stage, and how many micro batches each replica gets, so that
/// those which are slowest are as fast as they can be. A scenario is complete only with that, so it
/// is declared here; what a stage takes is known to steps, so it is written in
/// sim/step/balance.cpp.
#pragma once

#include <vector>

#include "sim/scenario/scenario.hpp"
#include "sim/scenario/scenario_draft.hpp"

namespace lockstep {

/// Layers of each stage, at least one where there are enough: the slowest stage takes least for a
/// micro batch (its passes, and collectives inside layers), no stage takes more memory than its
/// GPUs have, and of such splits it is the one with the least sum of squares of times. Where
/// nothing fits, memory is left out of account. Requires one chunk a rank, and at most
/// kMostSplits.
std::vector<int> balanced_layers(const Scenario& scenario);

/// Stages times layers squared, for which a split is looked for.
constexpr double kMostSplits = 2e8;

/// Micro batches of each replica, in proportion to their speed: the last is done as early as whole
/// micro batches allow, counting m micro batches of a replica as m times its slowest stage and its
/// other stages once. Replicas that share experts get the same number. Empty where there are too
/// few for all.
std::vector<int> balanced_micro_batches(const Scenario& scenario);

/// Does what the draft asks of these, and says in `out` what came of it. Throws InputError.
void balance(const ScenarioDraft& draft, Scenario& out);

}  // namespace lockstep
