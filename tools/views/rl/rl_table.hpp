/// What `lockstep run` prints of a step of reinforcement learning.
#pragma once

#include <optional>
#include <string>

#include "sim/answer/hash_answer.hpp"
#include "sim/answer/rl_answer.hpp"
#include "tools/console/table.hpp"

namespace lockstep {

/// For people. `hash`: where draws of the hashes were asked for.
std::string rl_table(const RlScenario& s, const RlResult& result,
                     const std::optional<HashAnswer>& hash, const TextStyle& style);

/// A header line, then a line for each part of the step.
CsvText rl_csv(const RlResult& result);

}  // namespace lockstep
