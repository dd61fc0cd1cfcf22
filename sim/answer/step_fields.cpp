#include <algorithm>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "models/spec/parameter_counts.hpp"
#include "sim/answer/answer_fields.hpp"
#include "sim/answer/pool_fields.hpp"
#include "sim/scenario/parallelism_json.hpp"
#include "sim/scenario/read_scenario.hpp"

namespace lockstep {
namespace {

using Step = RunResult;

double as_gib(Bytes bytes) { return bytes / gibibytes(1); }

std::optional<double> of_interval(const Step& r, double PredictionInterval::* end) {
  if (!r.interval) return std::nullopt;
  return r.report.step_s * (*r.interval).*end;
}
std::optional<double> of_band(const Step& r, double StepBand::* end) {
  if (!r.report.band) return std::nullopt;
  return (*r.report.band).*end;
}
std::optional<double> of_hashes(const Step& r, HashDraw HashBand::* which) {
  if (!r.hash || r.hash->draws <= 1) return std::nullopt;
  return (r.hash->bands[0].*which).value;
}
std::optional<double> of_training(const Step& r, double (*get)(const Step&, const TrainingCost&)) {
  const std::optional<TrainingCost> cost = training_cost(r);
  if (!cost) return std::nullopt;
  return get(r, *cost);
}
std::optional<double> of_price(const Step& r, double (*get)(const Step&, const TrainingCost&)) {
  const std::optional<TrainingCost> cost = training_cost(r);
  if (!cost || !cost->usd) return std::nullopt;
  return get(r, *cost);
}

void add_times(FieldTable<Step>& fields) {
  fields
      .add("step_s", Better::less, "Time of one training step.",
           [](const Step& r) { return r.report.step_s; })
      .add("step_s_low", Better::less,
           "Lower end of the 90 % interval, by the errors of published runs alike.",
           [](const Step& r) { return of_interval(r, &PredictionInterval::low); })
      .add("step_s_high", Better::less, "Upper end of the same.",
           [](const Step& r) { return of_interval(r, &PredictionInterval::high); })
      .add("exact_low_s",
           "The least that --unfold can give: step_s where the step is exact, below it where a "
           "sample of the replicas was simulated, or slow ramps of power may be hidden.",
           [](const Step& r) { return of_band(r, &StepBand::low_s); })
      .add("exact_high_s", "The most that --unfold can give.",
           [](const Step& r) { return of_band(r, &StepBand::high_s); })
      .add("hash_least_s", Better::less, "The shortest step over the draws of --hash-seeds.",
           [](const Step& r) { return of_hashes(r, &HashBand::least); })
      .add("hash_median_s", Better::less, "The median step over the draws of --hash-seeds.",
           [](const Step& r) { return of_hashes(r, &HashBand::median); })
      .add("hash_most_s", Better::less, "The longest step over the draws of --hash-seeds.",
           [](const Step& r) { return of_hashes(r, &HashBand::most); });
}

void add_throughput(FieldTable<Step>& fields) {
  fields
      .add("mfu", Better::more,
           "Model FLOP/s over the datasheet peak (MFU), attention counted in full.",
           [](const Step& r) { return r.report.mfu_full; })
      .add("mfu_causal", Better::more, "MFU with half of attention, as causal masks need.",
           [](const Step& r) { return r.report.mfu_causal; })
      .add("hfu", Better::more, "MFU with recomputed FLOP, attention in full.",
           [](const Step& r) { return r.report.hfu; })
      .add("tokens_per_s", Better::more, "Tokens that the job trains on.",
           [](const Step& r) { return r.report.tokens_per_s; })
      .add("tokens_per_s_per_gpu", Better::more, "Tokens per GPU.",
           [](const Step& r) { return r.report.tokens_per_s_per_gpu; })
      .add("tflops_per_gpu", Better::more, "Model TFLOP/s of a GPU, attention in full.",
           [](const Step& r) { return r.report.tflops_per_gpu_full; })
      .add("tflops_per_gpu_causal", Better::more, "Model TFLOP/s of a GPU, attention causal.",
           [](const Step& r) { return r.report.tflops_per_gpu_causal; })
      .add("tokens_per_step", "Tokens of a step.",
           [](const Step& r) { return r.report.tokens_per_step; })
      .add("gpus", "GPUs that the job uses.", [](const Step& r) { return r.scenario.gpus(); })
      .add("nodes", "Nodes that the job uses.", [](const Step& r) { return r.scenario.nodes; })
      .add("peak_memory_gib", Better::less,
           "Peak memory on the fullest pipeline stage, as the framework reserves it.",
           [](const Step& r) { return as_gib(r.memory.peak.total()); })
      .add("needed_memory_gib", Better::less,
           "The same without what the framework's allocator would give back.",
           [](const Step& r) { return as_gib(r.memory.peak.needed()); })
      .add("peak_memory_stage", "The fullest pipeline stage.",
           [](const Step& r) { return r.memory.fullest_stage; })
      .add("usable_memory_gib", "What a job can have of the card's memory.",
           [](const Step& r) { return as_gib(r.memory.usable); })
      .add("memory_capacity_gib", "All memory of the card.",
           [](const Step& r) { return as_gib(tightest_node(r.scenario).gpu.hbm_capacity); });
}

void add_training(FieldTable<Step>& fields) {
  fields
      .add("training_tokens", "Tokens of the whole training, as the scenario says.",
           [](const Step& r) {
             return of_training(
                 r, [](const Step& s, const TrainingCost&) { return *s.scenario.training_tokens; });
           })
      .add("time_to_train_s", Better::less, "Time of the whole training at this pace.",
           [](const Step& r) {
             return of_training(r, [](const Step&, const TrainingCost& c) { return c.seconds; });
           })
      .add("gpu_hours", Better::less, "GPU hours of the whole training.",
           [](const Step& r) {
             return of_training(r, [](const Step&, const TrainingCost& c) { return c.gpu_hours; });
           })
      .add("usd_per_gpu_hour", "Price of a GPU hour, as the scenario says.",
           [](const Step& r) {
             return of_price(r, [](const Step& s, const TrainingCost&) {
               return *s.scenario.usd_per_gpu_hour;
             });
           })
      .add("price_usd", Better::less, "Price of the whole training at that rate.",
           [](const Step& r) {
             return of_price(r, [](const Step&, const TrainingCost& c) { return *c.usd; });
           });
}

const FieldTable<MemoryBand>& band_fields() {
  using Of = MemoryBand;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("close", "Whether what is assumed could turn the verdict round.",
               [](const Of& b) { return b.close(); })
          .add("needed_gib_least", Better::less, "Memory needed under the most saving assumptions.",
               [](const Of& b) { return as_gib(b.least); })
          .add("needed_gib_most", Better::less, "Memory needed under the least saving ones.",
               [](const Of& b) { return as_gib(b.most); })
          .add("decides", "The assumption that decides, where it is close.", [](const Of& b) {
            return OrNull<std::string>{b.close() ? std::optional(b.decides) : std::nullopt};
          });
  return fields;
}

const FieldTable<TrainingJob>& batch_fields() {
  using Of = TrainingJob;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("sequences", "Sequences of a step.", [](const Of& j) { return j.batch.sequences; })
          .add("micro", "Sequences of a micro batch.",
               [](const Of& j) { return j.batch.micro_sequences; })
          .add("tokens", "Tokens of a sequence.", [](const Of& j) { return j.batch.tokens; })
          .add("sample_tokens", "Tokens of a sample, where samples are packed into sequences.",
               [](const Of& j) -> std::optional<double> {
                 if (j.batch.sample_tokens <= 0) return std::nullopt;
                 return j.batch.sample_tokens;
               })
          .add("images", "Images of a sequence, where a tower turns them into tokens.",
               [](const Of& j) -> std::optional<int> {
                 if (j.batch.images <= 0) return std::nullopt;
                 return j.batch.images;
               })
          .add("source_tokens",
               "Tokens that an encoder reads beside each sequence, where they differ.",
               [](const Of& j) -> std::optional<int> {
                 if (j.batch.source_tokens <= 0) return std::nullopt;
                 return j.batch.source_tokens;
               });
  return fields;
}

/// What experts get, and what becomes of it.
const FieldTable<TrainingJob>& routing_fields() {
  using Of = TrainingJob;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("capacity_factor", "Copies of tokens that an expert takes at most, over the mean.",
               [](const Of& j) {
                 return OrNull<double>{j.routing.capacity > 0 ? std::optional(j.routing.capacity)
                                                              : std::nullopt};
               })
          .add("dropped_share", Better::less, "Share of the copies that are dropped.",
               [](const Of& j) { return expert_load(j).dropped(); })
          .add("padding_share", Better::less, "Share of the experts' rows that are padding.",
               [](const Of& j) { return 1 - expert_load(j).useful(); })
          .add("fullest_rank", Better::less, "Load of the fullest rank over the mean.",
               [](const Of& j) { return expert_load(j).fullest; });
  return fields;
}

void add_model(FieldTable<Scenario>& fields) {
  const auto counts = [](const Scenario& s) { return parameter_counts(s.job.model); };
  fields.add("model", "The model.", [](const Scenario& s) { return s.job.model.name; })
      .add("parameters", "Its parameters, without modules that predict further tokens.",
           [counts](const Scenario& s) { return counts(s).total; })
      .add("active_parameters", "Parameters that a token meets.",
           [counts](const Scenario& s) { return counts(s).active; })
      .add("prediction_parameters", "Parameters of modules that predict further tokens.",
           [counts](const Scenario& s) { return counts(s).prediction; })
      .add("trained_parameters", "Parameters that are trained.",
           [](const Scenario& s) { return trained_parameters(s.job); });
}

const FieldTable<Scenario>& simulated_job_fields() {
  static const FieldTable<Scenario> fields = [] {
    FieldTable<Scenario> out;
    out.add("file", "The scenario's file.", [](const Scenario& s) { return s.file; })
        .add("about", "What the file says about itself.",
             [](const Scenario& s) { return s.about; });
    add_model(out);
    out.add("node", "Kind of node; the first where there are several.",
            [](const Scenario& s) { return s.node.name; })
        .add("gpu", "Its GPU.", [](const Scenario& s) { return s.node.gpu.name; })
        .add("fabric", "The network between nodes.",
             [](const Scenario& s) { return s.fabric.name; })
        .add("transport", "The network transport.",
             [](const Scenario& s) { return s.transport.name; })
        .add("stack", "The training software.", [](const Scenario& s) { return s.stack.name; })
        .add("release", "Its release; empty: none was given.",
             [](const Scenario& s) { return s.stack.release; })
        .add("precision", "Precision of the products.",
             [](const Scenario& s) { return info(s.job.precision).name; })
        .add("recompute", "Which activations are recomputed.",
             [](const Scenario& s) { return name_of(s.job.recompute); })
        .add("parallelism", "The layout, every key after defaults; null where it has no use.",
             [](const Scenario& s) { return Value::document(parallelism_json(s.job.parallelism)); })
        .object("batch", "The batch.", batch_fields(),
                [](const Scenario& s) -> const TrainingJob& { return s.job; })
        .object("routing", "What experts get, of models that have some.", routing_fields(),
                [](const Scenario& s) { return s.job.model.experts.count > 0 ? &s.job : nullptr; });
    return out;
  }();
  return fields;
}

/// What the machine can do at most, by its presets; of the first pool where there are several.
const FieldTable<Step>& hardware_fields() {
  static const FieldTable<Step> fields =
      FieldTable<Step>()
          .add("peak_flops_per_gpu", "Datasheet peak of a GPU.",
               [](const Step& r) { return r.report.peak_flops_per_gpu; })
          .add("peak_flops", "Of all GPUs.",
               [](const Step& r) { return r.report.peak_flops_per_gpu * r.scenario.gpus(); })
          .add("hbm_bytes_per_s", "Memory bandwidth of a GPU.",
               [](const Step& r) { return r.scenario.node.gpu.hbm_bandwidth; })
          .add("hbm_bytes", "Memory of a GPU; of several kinds that with the least to spare.",
               [](const Step& r) { return tightest_node(r.scenario).gpu.hbm_capacity; })
          .add("nvlink_bytes_per_s", "NVLink bandwidth of a GPU, one way.",
               [](const Step& r) { return r.scenario.node.gpu.nvlink_bandwidth; })
          .add("gpus_per_node", "GPUs of a node.",
               [](const Step& r) { return r.scenario.node.gpus; })
          .add("nics_per_node", "NICs of a node.",
               [](const Step& r) { return r.scenario.node.nics; })
          .add("nic_bytes_per_s", "Bandwidth of a NIC, one way.",
               [](const Step& r) { return r.scenario.node.nic_bandwidth; });
  return fields;
}

struct BucketShare {
  std::string_view bucket;
  double seconds = 0, share = 0;
};
std::vector<BucketShare> waterfall(const Step& r) {
  const std::vector<double> shares = bucket_shares(r.report.seconds);
  std::vector<BucketShare> out;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    const BucketInfo& info = buckets()[i];
    out.push_back({info.name, r.report.seconds[static_cast<std::size_t>(info.bucket)], shares[i]});
  }
  return out;
}
const FieldTable<BucketShare>& waterfall_fields() {
  using Of = BucketShare;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("bucket", "Where the time goes.", [](const Of& b) { return b.bucket; })
          .add("seconds", Better::less, "Mean over the GPUs.",
               [](const Of& b) { return b.seconds; })
          .add("share", Better::less, "Share of the step.", [](const Of& b) { return b.share; });
  return fields;
}

const FieldTable<StageReport>& stage_fields() {
  using Of = StageReport;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("stage", "Number of the stage.", [](const Of& s) { return s.stage; })
          .add("layers", "Layers on it.", [](const Of& s) { return s.layers; })
          .add("forward_s", Better::less, "A micro batch forward, with exchanges inside the stage.",
               [](const Of& s) { return s.forward_s; })
          .add("backward_s", Better::less,
               "A micro batch backward, with exchanges inside the stage.",
               [](const Of& s) { return s.backward_s; })
          .add("buckets_s", Better::less, "Seconds of the step by bucket.",
               [](const Of& s) { return bucket_seconds(s.seconds); })
          .object("memory", "Memory of a GPU of the stage.", memory_fields(),
                  [](const Of& s) -> const MemoryBreakdown& { return s.memory; });
  return fields;
}

const FieldTable<CriticalPathPart>& critical_path_fields() {
  using Of = CriticalPathPart;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("what", "What the end of the step waited for.", [](const Of& p) { return p.what; })
          .add("seconds", Better::less, "How long.", [](const Of& p) { return p.seconds; })
          .add("share", Better::less, "Share of the step.", [](const Of& p) { return p.share; });
  return fields;
}

const FieldTable<LargestLoss>& loss_fields() {
  using Of = LargestLoss;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("bucket", "The bucket.", [](const Of& l) { return l.bucket->name; })
          .add("share", Better::less, "Its share of the step.", [](const Of& l) { return l.share; })
          .add("attacked_by", "What attacks it in general; no change is simulated.",
               [](const Of& l) { return l.bucket->remedy; });
  return fields;
}

const FieldTable<JitterAnswer>& jitter_fields() {
  using Of = JitterAnswer;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("most_s", "How late a transfer starts at most.", [](const Of& j) { return j.most; })
          .add("aligned_step_s", Better::less, "The step where none is late.",
               [](const Of& j) { return j.aligned_s; });
  return fields;
}

const FieldTable<ExpectationCheck>& check_fields() {
  using Of = ExpectationCheck;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("what", "The quantity.", [](const Of& c) { return c.what; })
          .add("expected", "As it was measured.", [](const Of& c) { return c.expected; })
          .add("predicted", "As it is predicted.", [](const Of& c) { return c.predicted; })
          .add("error", "Predicted over measured, less 1.", [](const Of& c) { return c.error; })
          .add("within", "Whether that is within what the scenario allows.",
               [](const Of& c) { return c.within; });
  return fields;
}

const FieldTable<Step>& expectation_fields() {
  static const FieldTable<Step> fields =
      FieldTable<Step>()
          .add("source", "Where the measurement is from.",
               [](const Step& r) { return r.scenario.expect->source; })
          .add("within", "Relative error that the scenario allows.",
               [](const Step& r) { return r.scenario.expect->within; })
          .list("checks", "What was measured, against the prediction.", check_fields(),
                [](const Step& r) { return check_expectation(r); });
  return fields;
}

const FieldTable<StepReport>& simulation_fields() {
  using Of = StepReport;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("method", "How the answer comes about.",
               [](const Of& r) { return name_of(r.method); })
          .add("folded", "Whether replicas that do the same were simulated once.",
               [](const Of& r) { return r.folded; })
          .add("replicas", "Data-parallel replicas.", [](const Of& r) { return r.replicas; })
          .add("replicas_simulated", "Of these simulated.",
               [](const Of& r) { return r.replicas_simulated; })
          .add("actors", "GPUs simulated.", [](const Of& r) { return r.actors_simulated; })
          .add("items", "Pieces of work simulated.", [](const Of& r) { return r.items; })
          .add("flows", "Transfers simulated.", [](const Of& r) { return r.flows; })
          .add("events", "Events simulated.", [](const Of& r) { return r.events; });
  return fields;
}

std::optional<PoweredStep> power_of_step(const Step& r) {
  if (!r.power) return std::nullopt;
  return powered_step(r);
}

void add_details(FieldTable<Step>& fields) {
  fields
      .add("memory_fits", "Whether the job fits in memory.",
           [](const Step& r) { return r.memory.fits; })
      .object("memory_band", "What the verdict is under other assumptions.", band_fields(),
              [](const Step& r) -> const MemoryBand& { return r.memory.band; })
      .object("interval", "What step_s_low and step_s_high are made from.", interval_fields(),
              [](const Step& r) { return r.interval; })
      .object("job", "What was simulated, after defaults.", simulated_job_fields(),
              [](const Step& r) -> const Scenario& { return r.scenario; })
      .object("hardware", "What the machine can do at most, by its presets.", hardware_fields(),
              std::identity())
      .object("power", "Power and energy, where the scenario says \"power\".", power_fields(),
              power_of_step)
      .list("waterfall", "Every GPU-second of the step, in exactly one bucket.", waterfall_fields(),
            waterfall)
      .list_if_any("pools", "Each kind of node, where there are several.", pool_fields(),
                   pool_answers)
      .list("stages", "Each pipeline stage.", stage_fields(),
            [](const Step& r) -> const auto& { return r.report.stages; })
      .list("critical_path", "What the end of the step waited for, longest first.",
            critical_path_fields(),
            [](const Step& r) -> const auto& { return r.report.critical_path; })
      .object("largest_loss", "The largest bucket that a change can attack.", loss_fields(),
              [](const Step& r) -> std::optional<LargestLoss> {
                const LargestLoss loss = largest_loss(r.report);
                if (loss.bucket == nullptr) return std::nullopt;
                return loss;
              })
      .object("jitter", "What late starts of transfers cost, with --jitter.", jitter_fields(),
              [](const Step& r) { return r.jitter; })
      .object("hashing", "Draws of the paths' hashes, where there are any.", hash_fields(),
              [](const Step& r) { return r.hash; })
      .object("fabric", "What the fabric's switches cost, where they can hold messages back.",
              fabric_fields(), [](const Step& r) { return r.full_fabric ? &r : nullptr; })
      .add("assumptions", "What was assumed where the scenario says nothing.",
           [](const Step& r) { return r.scenario.assumptions; })
      .add("notes", "Approximations that were made.", [](const Step& r) { return r.report.notes; })
      .object("expectation", "What the scenario says was measured.", expectation_fields(),
              [](const Step& r) { return r.scenario.expect ? &r : nullptr; })
      .object("simulation", "What the simulator did.", simulation_fields(),
              [](const Step& r) -> const StepReport& { return r.report; });
}

}  // namespace

const FieldTable<RunResult>& step_fields() {
  static const FieldTable<Step> fields = [] {
    FieldTable<Step> out;
    add_head(out, "step");
    add_times(out);
    add_throughput(out);
    add_training(out);
    add_energy_fields(out, power_of_step);
    add_site_limit_fields(
        out, [](const Step& r) { return r.power ? &*r.power : nullptr; },
        [](const Step& r) -> const PowerSpec& { return *r.scenario.power; });
    add_details(out);
    add_written(out, [](const Step& r) -> const WrittenScenario& { return r.written; });
    return out;
  }();
  return fields;
}

nlohmann::ordered_json result_json(const RunResult& result, const MemberNames* only) {
  return Value(step_fields().values(result, only)).json();
}

}  // namespace lockstep
