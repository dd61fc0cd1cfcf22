#include <string>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "sim/answer/answer_fields.hpp"
#include "sim/rl/rl_account.hpp"
#include "sim/scenario/names.hpp"

namespace lockstep {
namespace {

using Rl = RlAnswer;

/// {"prefill": {"gpu_s", "share"}, ...}.
Value rl_bucket_values(const Rl& a) {
  const std::vector<double> shares = rl_shares(a.report);
  Value::Object out;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    out.emplace_back(rl_buckets()[i].name,
                     Value::Object{{"gpu_s", a.report.gpu_seconds[i]}, {"share", shares[i]}});
  }
  return out;
}

void add_rl_job(FieldTable<Rl>& fields) {
  fields.add("file", "The scenario's file.", [](const Rl& a) { return a.scenario.training.file; })
      .add("model", "The model.", [](const Rl& a) { return a.scenario.training.job.model.name; })
      .add("algorithm", "The algorithm.", [](const Rl& a) { return a.scenario.rl.algorithm->name; })
      .add("schedule", "How generation and training follow each other.",
           [](const Rl& a) -> std::string_view {
             return kRlScheduleNames[static_cast<std::size_t>(a.scenario.rl.schedule)];
           })
      .add("gpus", "GPUs of both pools.", [](const Rl& a) { return a.report.gpus(); })
      .add("training_gpus", "GPUs that train.", [](const Rl& a) { return a.report.training_gpus; })
      .add("generation_gpus", "GPUs of their own that generate; 0 where they share GPUs.",
           [](const Rl& a) { return a.report.generation_gpus; });
}

void add_rl_times(FieldTable<RlReport>& fields) {
  fields
      .add("step_s", Better::less, "Time of one step, from rollout to new weights.",
           [](const RlReport& r) { return r.step; })
      .add("generation_s", Better::less, "The rollout.",
           [](const RlReport& r) { return r.generation; })
      .add("scores_s", Better::less, "Rewards, reference, teacher and values.",
           [](const RlReport& r) { return r.scores; })
      .add("training_s", Better::less, "All updates.", [](const RlReport& r) { return r.training; })
      .add("offload_s", Better::less, "Training state out to the host and back.",
           [](const RlReport& r) { return r.offload; })
      .add("weight_sync_s", Better::less, "New weights to the engine.",
           [](const RlReport& r) { return r.weight_sync; })
      .add("tokens_per_step", "Prompts and responses of a step.",
           [](const RlReport& r) { return r.tokens; })
      .add("tokens_per_s_per_gpu", Better::more, "Prompts and responses per GPU.",
           [](const RlReport& r) { return r.tokens_per_s_per_gpu(); })
      .add("generated_tokens_per_s", Better::more, "Tokens that the engine generates.",
           [](const RlReport& r) { return r.generated_per_s(); })
      .add("generated_tokens_per_s_per_gpu", Better::more, "The same per GPU that generates.",
           [](const RlReport& r) {
             const double generating = r.generation_gpus > 0 ? r.generation_gpus : r.training_gpus;
             return r.generated_per_s() / generating;
           })
      .add("generation_idle_share", Better::less, "Share of the step that the engine's GPUs wait.",
           [](const RlReport& r) { return r.generation_idle; })
      .add("training_idle_share", Better::less, "Share of the step that the trainers' GPUs wait.",
           [](const RlReport& r) { return r.training_idle; });
}

void add_rollout(FieldTable<RlReport>& fields) {
  fields
      .add("response_mean_tokens", "Length of a response; mean.",
           [](const RlReport& r) { return r.response_mean; })
      .add("response_most_tokens", "Length of the longest response.",
           [](const RlReport& r) { return r.response_most; })
      .add("replicas", "Replicas of the engine.", [](const RlReport& r) { return r.replicas; })
      .add("sequences_mean", "Sequences that a replica decodes at once; mean.",
           [](const RlReport& r) { return r.sequences_mean; })
      .add("sequences_most", "The most at once.",
           [](const RlReport& r) { return r.sequences_most; })
      .add("cache_tokens", Better::more, "Tokens that a replica's cache has room for.",
           [](const RlReport& r) { return r.cache_tokens; })
      .add("preempted", Better::less, "How often a sequence had to leave the cache.",
           [](const RlReport& r) { return r.preempted; })
      .add("update_s", Better::less, "One optimiser step.",
           [](const RlReport& r) { return r.update.step_s; })
      .add("training_mfu", Better::more, "Its MFU, attention in full.",
           [](const RlReport& r) { return r.update.mfu_full; })
      .add("training_mfu_causal", Better::more, "Its MFU, attention causal.",
           [](const RlReport& r) { return r.update.mfu_causal; });
}

/// Of steps that generate nothing, in GiB.
template <class Get>
auto of_memory(Get get) {
  return [get](const Rl& a) -> std::optional<double> {
    if (!a.scenario.rl.algorithm->offline) return std::nullopt;
    return get(a.scenario) / gibibytes(1);
  };
}
std::optional<double> of_flops(const Rl& a, Flops RlFlops::* part) {
  if (!a.scenario.rl.algorithm->offline) return std::nullopt;
  return (rl_flops(a.scenario, a.report.training_batch).*part).base_units();
}
void add_account(FieldTable<Rl>& fields) {
  using S = RlScenario;
  fields
      .add(
          "peak_memory_gib", Better::less,
          "Where nothing is generated: peak memory on the fullest pipeline stage, with the weights "
          "of the reference or the teacher.",
          of_memory([](const S& s) { return rl_memory(s).peak.total(); }))
      .add("needed_memory_gib", Better::less,
           "The same without what the allocator would give back.",
           of_memory([](const S& s) { return rl_memory(s).peak.needed(); }))
      .add("frozen_weights_gib", Better::less, "Of it, weights of the reference or the teacher.",
           of_memory([](const S& s) { return frozen_weights(s); }))
      .add("usable_memory_gib", "What a job can have of the card's memory.",
           of_memory([](const S& s) { return rl_memory(s).usable; }))
      .add("training_flops", "Model FLOP of all updates, attention in full.",
           [](const Rl& a) { return of_flops(a, &RlFlops::training); })
      .add("scores_flops",
           "Model FLOP of the reference's or the teacher's forward passes, and of the actor's "
           "over mismatched samples (kto).",
           [](const Rl& a) { return of_flops(a, &RlFlops::scores); });
}

/// Of the whole training, where the scenario says how long it is.
template <class Get>
auto of_whole(Get get) {
  return [get](const Rl& a) -> std::optional<double> {
    const std::optional<double>& tokens = a.scenario.training.training_tokens;
    if (!tokens) return std::nullopt;
    return get(a, *tokens / a.report.tokens * a.report.step);
  };
}
double hours_of(const Rl& a, Seconds time) { return time.base_units() / 3600 * a.report.gpus(); }
void add_whole_training(FieldTable<Rl>& fields) {
  fields
      .add("training_tokens", "Tokens of the whole training, as the scenario says.",
           [](const Rl& a) { return a.scenario.training.training_tokens; })
      .add("time_to_train_s", Better::less, "Time of the whole training at this pace.",
           of_whole([](const Rl&, Seconds time) { return time.base_units(); }))
      .add("gpu_hours", Better::less, "GPU hours of the whole training.", of_whole(hours_of))
      .add("usd_per_gpu_hour", "Price of a GPU hour.",
           [](const Rl& a) { return a.scenario.training.usd_per_gpu_hour; })
      .add("price_usd", Better::less, "Its price, by the GPU hour.",
           [](const Rl& a) -> std::optional<double> {
             const std::optional<double>& price = a.scenario.training.usd_per_gpu_hour;
             if (!price) return std::nullopt;
             const auto whole =
                 of_whole([&](const Rl& of, Seconds time) { return *price * hours_of(of, time); });
             return whole(a);
           });
}

std::optional<PoweredStep> power_of_iteration(const Rl& a) {
  if (!a.power) return std::nullopt;
  return powered_step(a.scenario, a.report, *a.power);
}

std::optional<double> of_band(const Rl& a, double StepBand::* end) {
  if (!a.report.band) return std::nullopt;
  return (*a.report.band).*end;
}
std::optional<double> of_hashes(const Rl& a, HashDraw HashBand::* which) {
  if (!a.hash || a.hash->draws <= 1) return std::nullopt;
  return (a.hash->bands[0].*which).value;
}
void add_rl_spread(FieldTable<Rl>& fields) {
  fields
      .add("exact_low_s", "The least that --unfold can give, where a sample was simulated.",
           [](const Rl& a) { return of_band(a, &StepBand::low_s); })
      .add("exact_high_s", "The most that --unfold can give.",
           [](const Rl& a) { return of_band(a, &StepBand::high_s); })
      .add("hash_least_s", Better::less, "The shortest step over the draws of --hash-seeds.",
           [](const Rl& a) { return of_hashes(a, &HashBand::least); })
      .add("hash_median_s", Better::less, "The median step over the draws of --hash-seeds.",
           [](const Rl& a) { return of_hashes(a, &HashBand::median); })
      .add("hash_most_s", Better::less, "The longest step over the draws of --hash-seeds.",
           [](const Rl& a) { return of_hashes(a, &HashBand::most); })
      .object("hashing", "Draws of the paths' hashes, where there are any.", hash_fields(),
              [](const Rl& a) -> const auto& { return a.hash; });
}

}  // namespace

const FieldTable<RlReport>& iteration_fields() {
  static const FieldTable<RlReport> fields = [] {
    FieldTable<RlReport> out;
    add_rl_times(out);
    add_rollout(out);
    return out;
  }();
  return fields;
}

const FieldTable<RlAnswer>& rl_fields() {
  static const FieldTable<Rl> fields = [] {
    FieldTable<Rl> out;
    add_head(out, "rl");
    add_rl_job(out);
    out.all_of(iteration_fields(), [](const Rl& a) -> const RlReport& { return a.report; })
        .old_name("training_mfu_full", "training_mfu");
    add_account(out);
    add_whole_training(out);
    add_energy_fields(out, power_of_iteration);
    add_site_limit_fields(
        out, [](const Rl& a) { return a.power ? &a.power->site : nullptr; },
        [](const Rl& a) -> const PowerSpec& { return *a.scenario.training.power; });
    add_rl_spread(out);
    out.object("power", "Power and energy, where the scenario says \"power\".",
               iteration_power_fields(), [](const Rl& a) -> std::optional<PoweredIteration> {
                 if (!a.power) return std::nullopt;
                 return PoweredIteration{*power_of_iteration(a), a.power->phases};
               });
    out.add("buckets", "GPU-seconds and share of each bucket; every one in exactly one.",
            rl_bucket_values)
        .add("assumptions", "What was assumed where the scenario says nothing.",
             [](const Rl& a) { return a.scenario.training.assumptions; });
    add_written(out, [](const Rl& a) -> const WrittenScenario& { return a.written; });
    return out;
  }();
  return fields;
}

nlohmann::ordered_json rl_json(const RlScenario& s, const RlResult& r,
                               const std::optional<HashAnswer>& hash,
                               const WrittenScenario& written) {
  return Value(rl_fields().values({s, r.report, r.power, hash, written})).json();
}

}  // namespace lockstep
