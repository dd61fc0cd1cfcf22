/// Random scenarios of every kind that `lockstep run` answers, and how to make one that fails
/// small.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "sim/answer/answer.hpp"
#include "sim/scenario/preset_store.hpp"

namespace lockstep {

/// What is to be drawn.
struct RandomScenario {
  std::uint64_t seed = 1;
  std::uint32_t number = 0;          ///< the scenario is a function of both alone
  std::optional<AnswerKind> kind{};  ///< else any, steps most often
};

/// The text of a scenario that the reader takes: models, layouts, pools, experts, offload,
/// adapters, fabrics and their faults, power, failures and checkpoints; several jobs, reinforcement
/// learning, requests, queues.
std::string random_scenario(const RandomScenario& which, const PresetStore& presets);

/// The smallest scenario found that still `fails`: without keys and elements that it does not need,
/// with shorter lists and smaller numbers. Asks at most `most` times; `fails` says false of what
/// the reader refuses.
nlohmann::ordered_json shrunk(const nlohmann::ordered_json& scenario,
                              const std::function<bool(const nlohmann::ordered_json&)>& fails,
                              int most);

}  // namespace lockstep
