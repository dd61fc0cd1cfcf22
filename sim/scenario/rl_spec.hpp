/// What a scenario's "rl" says: a step of reinforcement learning after pre-training (RLHF, RLVR),
/// from the rollout to new weights in the engine that generates; or one of what learns from text
/// that is there with other models beside it, preference optimisation and distillation.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/generation/engine.hpp"
#include "sim/scenario/declared_members.hpp"
#include "sim/scenario/read_scenario.hpp"
#include "sim/scenario/responses.hpp"
#include "sim/scenario/scenario.hpp"

namespace lockstep {

/// Which models an algorithm has beside the actor when the scenario doesn't say.
struct RlAlgorithm {
  std::string_view name;   ///< as scenarios say it
  std::string_view title;  ///< as a person reads it
  bool reference;          ///< a frozen copy, for the KL penalty
  bool critic;             ///< a value model that is trained along
  bool reward_model;       ///< instead of a function of the text
  bool groups;             ///< several responses to a prompt are compared
  std::string_view source;
  bool offline = false;  ///< responses are there already: nothing is generated
  int responses = 1;     ///< to each prompt, of these
  bool teacher = false;  ///< another model whose logits the actor learns
  /// Actor and reference score responses to other prompts too, without gradients, for the KL term.
  bool mismatched = false;
};
std::span<const RlAlgorithm> rl_algorithms();

/// How rollouts and training take turns. The names are those of kRlScheduleNames.
enum class RlSchedule : std::uint8_t {
  synchronous,   ///< one after the other
  one_step_off,  ///< the rollout of the next step runs beside training, each waits for the other
  in_flight,     ///< the same, and new prompts start as old responses end: no batch drains
};
inline constexpr std::array<std::string_view, 3> kRlScheduleNames{"synchronous", "one_step_off",
                                                                  "in_flight"};

struct GenerationPool {
  EngineSpec engine;
  int nodes = 0;  ///< of its own, beside the cluster's; 0: the trainers' GPUs take turns
  int tensor = 1;
  bool expert_parallel = false;
  Precision precision = Precision::bf16;
  double cache_bytes = 2;  ///< of an element of keys and values
  bool offload = true;     ///< colocated: training state leaves for the host during a rollout
};

struct RlSpec {
  const RlAlgorithm* algorithm = nullptr;
  int prompts = 1;
  int generations = 1;  ///< responses to each prompt
  int updates = 1;      ///< optimiser steps on a rollout, each on its part of it
  int epochs = 1;       ///< times that training goes over a rollout
  int prompt_tokens = 1;
  ResponseLengths responses;
  GenerationPool generation;
  RlSchedule schedule = RlSchedule::synchronous;
  bool packing = true;            ///< a training row holds several responses, else one and padding
  bool log_probabilities = true;  ///< the trainer computes those of the old policy anew
  bool reference = false;
  Seconds reward;                        ///< of a function that no GPU computes
  std::optional<Scenario> reward_model;  ///< the scenario with that model in the actor's place
  std::optional<Scenario> critic;
  // Words of their input tables: what they give for a token is one number.
  int reward_model_words = 0, critic_words = 0;
  std::optional<Scenario> teacher;

  [[nodiscard]] int samples() const { return prompts * generations; }
  /// Of a reference over the samples of a step, those to other prompts with them.
  [[nodiscard]] double reference_passes() const { return algorithm->mismatched ? 2 : 1; }
  /// What training keeps of a GPU is there through the whole step: nothing else needs the trainers'
  /// GPUs, or it makes do with less.
  [[nodiscard]] bool training_stays() const { return generation.nodes > 0 || !generation.offload; }
};

/// A scenario with "rl": its batch is that of one update, in responses.
struct RlScenario {
  Scenario training;
  RlSpec rl;
};

/// All of its models trained and run on another fabric between the nodes that train.
RlScenario on_fabric(RlScenario scenario, const FabricSpec& fabric);

/// Reads both. Throws InputError. Arguments as of read_scenario().
RlScenario read_rl_scenario(const std::string& file, std::string_view text,
                            const PresetStore& presets, const ScenarioOptions& options = {});

// What an "rl" and an engine may have (spec_readers.hpp).
void declare_rl(const DeclaredMembers& member, RlSpec& out);
void declare_engine(const DeclaredMembers& member, EngineSpec& out);
void declare_speculation(const DeclaredMembers& member, Speculation& out);
void declare_serving_engine(const DeclaredMembers& member, ServingEngine& out);

/// The preset of that name in models/presets/engines. Throws InputError.
EngineSpec engine_preset(const PresetStore& presets, std::string_view name);

}  // namespace lockstep
