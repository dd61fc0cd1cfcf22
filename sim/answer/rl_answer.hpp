/// The answer to a scenario with "rl", a step of reinforcement learning, as JSON.
#pragma once

#include <optional>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "sim/answer/hash_answer.hpp"
#include "sim/answer/step_answer.hpp"
#include "sim/power/rl_power.hpp"
#include "sim/rl/rl_step.hpp"

namespace lockstep {

/// Throws InputError where training, or another model in its turn (rl_turns()), does not fit in
/// memory. During a rollout the state of training leaves, or takes of the cache.
void require_memory(const RlScenario& scenario);

/// A step of reinforcement learning, and its power where the scenario asks for it.
struct RlResult {
  RlReport report;
  std::optional<RlPower> power;
};
RlResult answer_rl(const RlScenario& scenario);

/// Shares of the GPU-seconds of a step, by RlBucket; they add up to 1.
std::vector<double> rl_shares(const RlReport& report);

/// An iteration as a step with its power.
PoweredStep powered_step(const RlScenario& scenario, const RlReport& report, const RlPower& power);

/// With units in the names, at most 12 significant digits, in a fixed order.
nlohmann::ordered_json rl_json(const RlScenario& s, const RlResult& r,
                               const std::optional<HashAnswer>& hash,
                               const WrittenScenario& written = {});

}  // namespace lockstep
