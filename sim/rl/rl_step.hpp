/// Simulates one step of reinforcement learning: rollout, scores, training, new weights to the
/// engine; how long it takes and where the GPU time goes.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/rl/rollout.hpp"
#include "sim/scenario/rl_spec.hpp"
#include "sim/step/step_report.hpp"

namespace lockstep {

/// Where a GPU-second of a step can go. Every one lands in exactly one.
enum class RlBucket : std::uint8_t {
  prefill,
  decode_products,   ///< reading weights, arithmetic
  decode_attention,  ///< reading keys and values
  decode_other,      ///< sums over tensor-parallel ranks
  decode_host,       ///< between decoding steps
  drain,             ///< replicas that wait for the one with the last response
  reward_function,   ///< all wait for what no GPU computes
  reward_model,
  reference,
  teacher,
  values,  ///< the critic's forward pass
  log_probabilities,
  training,
  critic_training,
  offload,  ///< training state out to the host and back
  weight_sync,
  generation_idle,  ///< the engine's own GPUs wait for the trainers
  training_idle,    ///< and the other way round
};
constexpr std::size_t kRlBuckets = 18;
struct RlBucketInfo {
  std::string_view name;   ///< as JSON says it
  std::string_view title;  ///< as a person reads it
};
const std::array<RlBucketInfo, kRlBuckets>& rl_buckets();

struct RlReport {
  Seconds step;
  // One after the other, or the longer of generation and all else (RlSpec::schedule).
  Seconds generation, scores, training, offload, weight_sync;
  std::array<double, kRlBuckets> gpu_seconds{};   ///< adds up to step x gpus()
  int training_gpus = 0, generation_gpus = 0;     ///< the latter 0 where they share GPUs
  double generation_idle = 0, training_idle = 0;  ///< shares of the step; 0 where they share GPUs
  double response_mean = 0;
  int response_most = 0;
  double tokens = 0;            ///< prompts and responses of a step
  double generated_tokens = 0;  ///< of responses
  int replicas = 0;
  double sequences_mean = 0;  ///< decoded at once on a replica, over its decoding steps
  int sequences_most = 0;
  double cache_tokens = 0;  ///< that a replica has room for
  std::uint64_t preempted = 0;
  Batch training_batch;  ///< of one update, as it was simulated
  StepReport update;     ///< one optimiser step of the actor
  // What power is worked out of, where RlQuestion asks for it; the actor's timeline too.
  std::optional<StepReport> critic_update;            ///< where there is a critic
  std::vector<std::vector<RolloutStretch>> rollouts;  ///< of each replica that generated
  Bytes engine_weights;                               ///< on a GPU that generates
  /// Between which the step lies where replicas of the actor's or the critic's step are a sample;
  /// `step` twice where both are exact; none where one was folded as asked.
  std::optional<StepBand> band;

  [[nodiscard]] int gpus() const { return training_gpus + generation_gpus; }
  [[nodiscard]] double tokens_per_s_per_gpu() const { return tokens / step.base_units() / gpus(); }
  [[nodiscard]] double generated_per_s() const {
    return generation > Seconds{} ? generated_tokens / generation.base_units() : 0;
  }
};

struct RlQuestion {
  bool power = false;  ///< keep what rl_power() needs
};

/// Where nothing is generated (RlAlgorithm::offline) a step is scores and training.
///
/// Training is the step engine's, `updates` x `epochs` times, of rows that are packed with samples
/// or padded. Reference, reward, values and log-probabilities are forward passes in
/// the layout of training. Weights go to the engine at EngineSpec::refit_rate, or at the network's
/// or NVLink's if that is less. Leaves out: how uneven packed rows are, several turns with an
/// environment, validation, checkpoints. Throws InputError where the cache of a replica does not
/// hold the longest response. The same scenario gives the same report, bit for bit.
RlReport simulate_rl_step(const RlScenario& scenario, const RlQuestion& question = {});

/// A replica of the engine that generates for such training.
ServingReplicaSpec rollout_replica(const Scenario& training, const GenerationPool& pool);

/// Sequences that the engine decodes at once where none gets longer than `longest` tokens.
int most_sequences(const EngineSpec& engine, double cache_tokens, int longest);

/// Rows of `row_tokens` that hold the samples, each whole: the tightest row that has room, longest
/// sample first. Requires samples of at most `row_tokens`.
int packed_rows(std::vector<int> tokens, int row_tokens);

/// The batch of one update as the step engine runs it: as written, or its packed rows, each as
/// samples of equal length. `lengths` are those of all responses of a rollout.
Batch training_batch(const Scenario& training, const RlSpec& rl, const std::vector<int>& lengths);

/// One forward pass over the scenario's batch: each stage's passes one after the other, the first
/// through all stages; where weights are gathered for it (zero3), at least that long.
Seconds forward_time(const Scenario& scenario);

}  // namespace lockstep
