#include "sim/rl/rl_step.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <functional>
#include <set>
#include <utility>

#include "models/base/input_error.hpp"
#include "sim/rl/rl_account.hpp"
#include "sim/step/plan.hpp"
#include "sim/step/step.hpp"

namespace lockstep {
namespace {

constexpr std::array<RlBucketInfo, kRlBuckets> kRlTitles{{
    {"prefill", "Prefill"},
    {"decode_products", "Decode: weights"},
    {"decode_attention", "Decode: keys and values"},
    {"decode_other", "Decode: exchanges"},
    {"decode_host", "Decode: host"},
    {"drain", "Wait for last response"},
    {"reward_function", "Reward function"},
    {"reward_model", "Reward model"},
    {"reference", "Reference model"},
    {"teacher", "Teacher"},
    {"values", "Values (critic)"},
    {"log_probabilities", "Log-probabilities"},
    {"training", "Training"},
    {"critic_training", "Critic's training"},
    {"offload", "Offload to host"},
    {"weight_sync", "Weights to engine"},
    {"generation_idle", "Engine idle"},
    {"training_idle", "Trainers idle"},
}};

/// What all replicas together did.
struct Generation {
  Seconds time;                 ///< until the last response, or in_flight: in the long run
  RolloutWork prefill, decode;  ///< of all replicas
  double steps = 0, decoded = 0;
};

Seconds over(Bytes bytes, BytesPerSecond rate) { return bytes / rate; }

class RlStep {
 public:
  RlStep(const RlScenario& scenario, const RlQuestion& question)
      : scenario_(scenario),
        powered_(question.power),
        training_(scenario.training),
        rl_(scenario.rl) {
    if (!rl_.algorithm->offline) replica_.emplace(rollout_replica(training_, rl_.generation));
  }

  RlReport run() {
    out_.training_gpus = training_.gpus();
    out_.generation_gpus = rl_.generation.nodes * training_.node.gpus;
    const std::vector<int> lengths = response_lengths(rl_.responses, rl_.samples(), kSeed);
    for (const int length : lengths) {
      out_.generated_tokens += length;
      out_.response_most = std::max(out_.response_most, length);
    }
    out_.response_mean = out_.generated_tokens / rl_.samples();
    out_.tokens = out_.generated_tokens + static_cast<double>(rl_.samples()) * rl_.prompt_tokens;
    if (!rl_.algorithm->offline) generate(lengths);
    score_and_train(lengths);
    if (!rl_.algorithm->offline) change_weights();
    take_turns();
    return out_;
  }

 private:
  static constexpr std::uint64_t kSeed = 1;

  double& bucket(RlBucket b) { return out_.gpu_seconds[static_cast<std::size_t>(b)]; }
  /// All GPUs that train are busy for so long.
  Seconds trainers(RlBucket b, Seconds time) {
    bucket(b) += time.base_units() * out_.training_gpus;
    return time;
  }
  [[nodiscard]] bool colocated() const { return rl_.generation.nodes == 0; }
  [[nodiscard]] int generating_gpus() const {
    return colocated() ? out_.training_gpus : out_.generation_gpus;
  }

  void require_cache() {
    const double longest = rl_.prompt_tokens + out_.response_most;
    if (out_.cache_tokens >= longest) return;
    const auto gib = [](Bytes bytes) { return fmt::format("{:.1f} GiB", bytes / gibibytes(1)); };
    throw InputError(
        {.file = training_.file,
         .pointer = "/rl/generation",
         .found = fmt::format("replicas with {} of weights and a cache of {:.0f} tokens",
                              gib(replica_->weights()), std::floor(out_.cache_tokens)),
         .allowed = fmt::format("a cache of at least {:.0f} tokens: larger \"tensor\"{}", longest,
                                colocated() && !rl_.generation.offload ? ", or \"offload\"" : ""),
         .nearest = {}});
  }

  void generate(const std::vector<int>& lengths) {
    out_.replicas = generating_gpus() / rl_.generation.tensor;
    const bool stays = colocated() && !rl_.generation.offload;
    const double each = std::ceil(static_cast<double>(lengths.size()) / out_.replicas);
    const Bytes states = each * replica_->state_per_sequence();
    out_.cache_tokens =
        replica_->cache_tokens(states + (stays ? training_state(scenario_) : Bytes{}));
    require_cache();
    Generation all;
    for (int r = 0; r < out_.replicas; ++r) add_replica(lengths, r, all);
    out_.generation = all.time;
    out_.sequences_mean = all.steps > 0 ? all.decoded / all.steps : out_.sequences_most;
    const double gpus = generating_gpus(), group = rl_.generation.tensor;
    const auto book = [&](RlBucket b, Seconds time) { bucket(b) += time.base_units() * group; };
    book(RlBucket::prefill, all.prefill.total());
    book(RlBucket::decode_products, all.decode.time.products);
    book(RlBucket::decode_attention, all.decode.time.attention);
    book(RlBucket::decode_other, all.decode.time.exchange);
    book(RlBucket::decode_host, all.decode.time.host);
    const Seconds busy = all.prefill.total() + all.decode.total();
    bucket(RlBucket::drain) =
        std::max(0.0, all.time.base_units() * gpus - busy.base_units() * group);
  }

  /// The responses r, r + replicas, ...
  void add_replica(const std::vector<int>& lengths, int r, Generation& all) {
    std::vector<int> own;
    for (auto i = static_cast<std::size_t>(r); i < lengths.size();
         i += static_cast<std::size_t>(out_.replicas)) {
      own.push_back(lengths[i]);
    }
    if (own.empty()) return;
    Rollout step = rl_.schedule == RlSchedule::in_flight ? in_the_long_run(own) : batches(own, 1);
    all.time = std::max(all.time, step.time);
    all.prefill += step.prefill;
    all.decode += step.decode;
    all.steps += step.steps;
    all.decoded += step.tokens - static_cast<double>(own.size());
    out_.sequences_most = std::max(out_.sequences_most, step.most_sequences);
    out_.preempted += step.preempted;
    if (powered_) out_.rollouts.push_back(std::move(step.stretches));
  }

  /// `count` batches of the responses, new ones as old ones end, no more of them at once than are
  /// in a batch.
  [[nodiscard]] Rollout batches(const std::vector<int>& own, int count) {
    std::vector<int> responses;
    for (int i = 0; i < count; ++i) responses.insert(responses.end(), own.begin(), own.end());
    const int longest = rl_.prompt_tokens + rl_.responses.most;
    const EngineSpec& engine = rl_.generation.engine;
    const int at_once = most_sequences(engine, out_.cache_tokens, longest);
    return roll_out(*replica_, {.prompt_tokens = rl_.prompt_tokens,
                                .pass_tokens = engine.prefill_tokens,
                                .responses = responses,
                                .prefills = engine.shared_prompts ? 1.0 / rl_.generations : 1.0,
                                .cache_tokens = out_.cache_tokens,
                                .most_sequences = std::min(at_once, static_cast<int>(own.size())),
                                .keep_stretches = powered_ && count == 1});
  }

  /// What a batch adds when the first ones, which start together, are over.
  [[nodiscard]] Rollout in_the_long_run(const std::vector<int>& own) {
    constexpr int kFewer = 2, kMore = 4;
    const Rollout fewer = batches(own, kFewer);
    Rollout step = batches(own, kMore);
    constexpr double kEach = 1.0 / (kMore - kFewer);
    step.time = kEach * (step.time - fewer.time);
    step.prefill += -1.0 * fewer.prefill;
    step.prefill = kEach * step.prefill;
    step.decode += -1.0 * fewer.decode;
    step.decode = kEach * step.decode;
    step.steps = kEach * (step.steps - fewer.steps);
    step.tokens = kEach * (step.tokens - fewer.tokens);
    step.preempted = (step.preempted - std::min(step.preempted, fewer.preempted)) /
                     static_cast<std::uint64_t>(kMore - kFewer);
    if (powered_) {
      step.stretches = {{.prefill = step.prefill.total(),
                         .decode = step.decode.total(),
                         .prefill_drawn = step.prefill.drawn,
                         .decode_drawn = step.decode.drawn}};
    }
    return step;
  }

  [[nodiscard]] Scenario with_batch(const Scenario& of) const {
    Scenario scenario = of;
    scenario.job.batch = out_.training_batch;
    return scenario;
  }

  void score_and_train(const std::vector<int>& lengths) {
    out_.training_batch = training_batch(training_, rl_, lengths);
    const Scenario actor = with_batch(training_);
    const double parts = rl_.updates;
    const Seconds forward = parts * forward_time(actor);
    out_.scores += trainers(RlBucket::reward_function, rl_.reward);
    if (rl_.reward_model) {
      out_.scores +=
          trainers(RlBucket::reward_model, parts * forward_time(with_batch(*rl_.reward_model)));
    }
    const bool mismatched = rl_.algorithm->mismatched;
    if (rl_.reference) {
      out_.scores += trainers(RlBucket::reference, rl_.reference_passes() * forward);
    }
    if (rl_.teacher) {
      out_.scores += trainers(RlBucket::teacher, parts * forward_time(with_batch(*rl_.teacher)));
    }
    if (rl_.log_probabilities || mismatched) {
      out_.scores += trainers(RlBucket::log_probabilities, forward);
    }
    const StepOptions how{.record_timeline = powered_, .keep_actors = powered_};
    out_.update = simulate_step(actor, how);
    train(RlBucket::training, out_.update);
    if (!rl_.critic) return;
    const Scenario critic = with_batch(*rl_.critic);
    out_.scores += trainers(RlBucket::values, parts * forward_time(critic));
    StepReport update = simulate_step(critic, how);
    train(RlBucket::critic_training, update);
    if (powered_) out_.critic_update = std::move(update);
  }

  /// All updates of a step, each of which takes as long as that one.
  void train(RlBucket b, const StepReport& update) {
    const double times = static_cast<double>(rl_.updates) * rl_.epochs;
    out_.training += trainers(b, times * Seconds{update.step_s});
    folded_ = folded_ || !update.band;
    if (folded_) return;
    least_training_ += times * Seconds{update.band->low_s};
    most_training_ += times * Seconds{update.band->high_s};
  }

  /// The slowest link that every byte of the model has to pass.
  [[nodiscard]] BytesPerSecond widest_rate() const {
    const NodeSpec& node = training_.node;
    const Parallelism& cut = training_.job.parallelism;
    const bool inside = colocated() && cut.tensor * cut.pipeline * cut.expert <= node.nvlink_domain;
    const BytesPerSecond local = node.gpu.nvlink_bandwidth > BytesPerSecond{}
                                     ? node.gpu.nvlink_bandwidth
                                     : node.gpu.pcie_bandwidth;
    return inside ? local : payload_bandwidth(node, training_.transport);
  }

  /// Weights of the whole model in the format of generation: what a change of weights moves.
  [[nodiscard]] Bytes model_bytes() const {
    const double ends = end_parameters(replica_->spec().model);
    const double layers = total_parameters(replica_->spec().model) - ends;
    constexpr double kTwoBytes = 2;  // of a number of the ends, in 16 bit
    return Bytes{kTwoBytes * ends + info(rl_.generation.precision).bytes_per_element * layers};
  }

  void change_weights() {
    const EngineSpec& engine = rl_.generation.engine;
    out_.engine_weights = replica_->weights();
    out_.weight_sync =
        engine.refit_overhead + over(model_bytes(), std::min(engine.refit_rate, widest_rate()));
    bucket(RlBucket::weight_sync) = out_.weight_sync.base_units() * out_.gpus();
    if (!colocated() || !rl_.generation.offload) return;
    out_.offload = trainers(
        RlBucket::offload,
        2 * over(training_state(scenario_), engine.host_copy * training_.node.gpu.pcie_bandwidth));
  }

  /// Generation and all that trainers do, one after the other or beside each other.
  [[nodiscard]] Seconds turns_with(Seconds training) const {
    const Seconds trained = out_.scores + training + out_.offload;
    const bool together = rl_.schedule != RlSchedule::synchronous;
    return together ? std::max(out_.generation, trained) : out_.generation + trained;
  }

  void take_turns() {
    const Seconds trained = out_.scores + out_.training + out_.offload;
    const Seconds turns = turns_with(out_.training);
    out_.step = turns + out_.weight_sync;
    if (!folded_) {
      out_.band = {.low_s = (turns_with(least_training_) + out_.weight_sync).base_units(),
                   .high_s = (turns_with(most_training_) + out_.weight_sync).base_units()};
    }
    if (colocated()) return;
    const Seconds waits = turns - out_.generation, trainers_wait = turns - trained;
    bucket(RlBucket::generation_idle) = waits.base_units() * out_.generation_gpus;
    bucket(RlBucket::training_idle) = trainers_wait.base_units() * out_.training_gpus;
    out_.generation_idle = waits / out_.step;
    out_.training_idle = trainers_wait / out_.step;
  }

  const RlScenario& scenario_;
  bool powered_;
  const Scenario& training_;
  const RlSpec& rl_;
  std::optional<ServingReplica> replica_;  ///< where responses are generated
  RlReport out_;
  Seconds least_training_, most_training_;  ///< of all updates, by the bands of their steps
  bool folded_ = false;                     ///< a step has no band
};

}  // namespace

ServingReplicaSpec rollout_replica(const Scenario& training, const GenerationPool& pool) {
  ServingReplicaSpec spec;
  spec.model = training.job.model;
  // A token that the model would predict beside the next one is left out of generation.
  spec.model.predicted_tokens = 0;
  spec.node = training.node;
  spec.transport = training.transport;
  spec.engine = pool.engine.rollout();
  spec.tensor = pool.tensor;
  spec.expert = pool.expert_parallel ? pool.tensor : 1;
  spec.weights = spec.experts = weight_format(pool.precision);
  spec.cache_bytes = pool.cache_bytes;
  return spec;
}

int most_sequences(const EngineSpec& engine, double cache_tokens, int longest) {
  if (!engine.reserves) return engine.most_sequences;
  const double fit = std::floor(cache_tokens / longest);
  return static_cast<int>(std::clamp(fit, 1.0, 1.0 * engine.most_sequences));
}

const std::array<RlBucketInfo, kRlBuckets>& rl_buckets() { return kRlTitles; }

RlReport simulate_rl_step(const RlScenario& scenario, const RlQuestion& question) {
  return RlStep{scenario, question}.run();
}

int packed_rows(std::vector<int> tokens, int row_tokens) {
  std::ranges::sort(tokens, std::greater<>());
  std::multiset<int> room;  // of rows that are not full
  int rows = 0;
  for (const int length : tokens) {
    const auto tightest = room.lower_bound(length);
    int left = row_tokens - length;
    if (tightest == room.end()) {
      ++rows;
    } else {
      left = *tightest - length;
      room.erase(tightest);
    }
    if (left > 0) room.insert(left);
  }
  return rows;
}

Batch training_batch(const Scenario& training, const RlSpec& rl, const std::vector<int>& lengths) {
  const Batch& written = training.job.batch;
  const Parallelism& cut = training.job.parallelism;
  if (!rl.packing) return written;
  std::vector<int> tokens;
  double all = 0;
  for (const int length : lengths) {
    tokens.push_back(rl.prompt_tokens + length);
    all += tokens.back();
  }
  const double mean = all / rl.samples();
  const int rows = (packed_rows(tokens, written.tokens) + rl.updates - 1) / rl.updates;
  const int group = written.micro_sequences * cut.data;
  const int micro_batches = (rows + group - 1) / group;
  // A row is so many samples of equal length, which attend to themselves alone.
  const double row_tokens = all / rl.updates / (static_cast<double>(micro_batches) * group);
  const int samples = std::max(1, static_cast<int>(std::lround(row_tokens / mean)));
  const int multiple = cut.context * (cut.sequence ? cut.tensor : 1);
  Batch batch = written;
  batch.micro_sequences = written.micro_sequences * samples;
  batch.sequences = micro_batches * group * samples;
  batch.tokens = multiple * static_cast<int>(std::ceil(row_tokens / samples / multiple));
  return batch;
}

Seconds forward_time(const Scenario& scenario) {
  const StepPlan plan = plan_step(scenario);
  Seconds once, slowest, gathers;
  for (const StagePlan& stage : plan.stages) {
    const Seconds forward = to_seconds(stage.forward);
    once += forward;
    slowest = std::max(slowest, forward);
    Seconds gathered;
    for (const DataCollective& c : stage.collectives) {
      if (c.op != CollectiveOp::all_gather) continue;
      gathered += to_seconds(c.latency) + c.payload / stage.channels[c.channel].cost.payload_rate;
    }
    gathers = std::max(gathers, gathered);
  }
  const Seconds compute = once + (plan.micro_batches - 1.0) * slowest;
  if (scenario.job.parallelism.sharding != Sharding::zero3) return compute;
  // Gathered again for the backward pass, unless weights are kept.
  return std::max(compute, (scenario.job.parallelism.reshard ? 0.5 : 1.0) * gathers);
}

}  // namespace lockstep
