#include <nlohmann/json.hpp>

#include "models/base/number_text.hpp"
#include "models/spec/parameter_counts.hpp"
#include "sim/scenario/parallelism_json.hpp"
#include "sim/scenario/read_scenario.hpp"
#include "tools/lockstep/run_pools.hpp"
#include "tools/lockstep/run_result.hpp"
#include "tools/lockstep/site_limit.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

double gib(Bytes bytes) { return twelve_digits(bytes / gibibytes(1)); }

Json scenario_json(const Scenario& scenario) {
  const TrainingJob& job = scenario.job;
  const ParameterCounts counts = parameter_counts(job.model);
  return {{"file", scenario.file},
          {"about", scenario.about},
          {"model", job.model.name},
          {"parameters", twelve_digits(counts.total)},
          {"active_parameters", twelve_digits(counts.active)},
          {"prediction_parameters", twelve_digits(counts.prediction)},
          {"trained_parameters", twelve_digits(trained_parameters(job))},
          {"node", scenario.node.name},
          {"gpu", scenario.node.gpu.name},
          {"fabric", scenario.fabric.name},
          {"transport", scenario.transport.name},
          {"stack", scenario.stack.name},
          {"release", scenario.stack.release},
          {"precision", info(job.precision).name},
          {"recompute", name_of(job.recompute)},
          {"parallelism", parallelism_json(job.parallelism)},
          {"batch",
           {{"sequences", job.batch.sequences},
            {"micro", job.batch.micro_sequences},
            {"tokens", job.batch.tokens}}}};
}

/// What the machine can do at most, by its presets; of the first pool where there are several.
Json hardware_json(const RunResult& result) {
  const NodeSpec& node = result.scenario.node;
  const GpuSpec& gpu = node.gpu;
  const double peak = result.report.peak_flops_per_gpu;
  return {{"peak_flops_per_gpu", twelve_digits(peak)},
          {"peak_flops", twelve_digits(peak * result.scenario.gpus())},
          {"hbm_bytes_per_s", twelve_digits(gpu.hbm_bandwidth.base_units())},
          {"hbm_bytes", twelve_digits(gpu.hbm_capacity.base_units())},
          {"nvlink_bytes_per_s", twelve_digits(gpu.nvlink_bandwidth.base_units())},
          {"gpus_per_node", node.gpus},
          {"nics_per_node", node.nics},
          {"nic_bytes_per_s", twelve_digits(node.nic_bandwidth.base_units())}};
}

/// What experts get, and what becomes of it; of models that have experts.
Json routing_json(const TrainingJob& job) {
  const ExpertLoad load = expert_load(job);
  return {{"capacity_factor", job.routing.capacity > 0 ? Json(job.routing.capacity) : Json()},
          {"dropped_share", twelve_digits(load.dropped())},
          {"padding_share", twelve_digits(1 - load.useful())},
          {"fullest_rank", twelve_digits(load.fullest)}};
}

Json waterfall_json(const BucketTimes& seconds) {
  const std::vector<double> shares = bucket_shares(seconds);
  Json waterfall = Json::array();
  for (std::size_t i = 0; i < shares.size(); ++i) {
    const BucketInfo& info = buckets()[i];
    waterfall.push_back({{"bucket", info.name},
                         {"seconds", twelve_digits(seconds[static_cast<std::size_t>(info.bucket)])},
                         {"share", twelve_digits(shares[i])}});
  }
  return waterfall;
}

Json memory_json(const MemoryBreakdown& memory) {
  return {{"total_gib", gib(memory.total())},
          {"needed_gib", gib(memory.needed())},
          {"weights_gib", gib(memory.weights)},
          {"gradients_gib", gib(memory.gradients)},
          {"optimiser_gib", gib(memory.optimiser)},
          {"activations_gib", gib(memory.activations)},
          {"logits_gib", gib(memory.logits)},
          {"communication_gib", gib(memory.communication)},
          {"framework_gib", gib(memory.framework)},
          {"cached_gib", gib(memory.cached)},
          {"host_gib", gib(memory.host)}};
}

Json band_json(const MemoryBand& band) {
  return {{"close", band.close()},
          {"needed_gib_least", gib(band.least)},
          {"needed_gib_most", gib(band.most)},
          {"decides", band.close() ? Json(band.decides) : Json(nullptr)}};
}

Json stages_json(const StepReport& report) {
  Json stages = Json::array();
  for (const StageReport& stage : report.stages) {
    Json buckets_s;
    for (const BucketInfo& info : buckets()) {
      buckets_s[std::string(info.name)] =
          twelve_digits(stage.seconds[static_cast<std::size_t>(info.bucket)]);
    }
    stages.push_back({{"stage", stage.stage},
                      {"layers", stage.layers},
                      {"forward_s", twelve_digits(stage.forward_s)},
                      {"backward_s", twelve_digits(stage.backward_s)},
                      {"buckets_s", std::move(buckets_s)},
                      {"memory", memory_json(stage.memory)}});
  }
  return stages;
}

Json critical_path_json(const StepReport& report) {
  Json path = Json::array();
  for (const CriticalPathPart& part : report.critical_path) {
    path.push_back({{"what", part.what},
                    {"seconds", twelve_digits(part.seconds)},
                    {"share", twelve_digits(part.share)}});
  }
  return path;
}

void add_training(Json& out, const RunResult& result) {
  const std::optional<TrainingCost> cost = training_cost(result);
  if (!cost) return;
  out["training_tokens"] = twelve_digits(*result.scenario.training_tokens);
  out["time_to_train_s"] = twelve_digits(cost->seconds);
  out["gpu_hours"] = twelve_digits(cost->gpu_hours);
  if (!cost->usd) return;
  out["usd_per_gpu_hour"] = twelve_digits(*result.scenario.usd_per_gpu_hour);
  out["price_usd"] = twelve_digits(*cost->usd);
}

Json expectation_json(const RunResult& result) {
  Json checks = Json::array();
  for (const ExpectationCheck& check : check_expectation(result)) {
    checks.push_back({{"what", check.what},
                      {"expected", twelve_digits(check.expected)},
                      {"predicted", twelve_digits(check.predicted)},
                      {"error", twelve_digits(check.error)},
                      {"within", check.within}});
  }
  return {{"source", result.scenario.expect->source},
          {"within", twelve_digits(result.scenario.expect->within)},
          {"checks", std::move(checks)}};
}

/// The fields that --assert and CSV know: all numbers.
Json headline_json(const RunResult& result) {
  const StepReport& report = result.report;
  Json out{{"step_s", twelve_digits(report.step_s)}};
  if (result.interval) {
    out["step_s_low"] = twelve_digits(report.step_s * result.interval->low);
    out["step_s_high"] = twelve_digits(report.step_s * result.interval->high);
  }
  if (report.band) {
    out["exact_low_s"] = twelve_digits(report.band->low_s);
    out["exact_high_s"] = twelve_digits(report.band->high_s);
  }
  if (result.hash && result.hash->draws > 1) add_band_headline(result.hash->bands[0], out);
  out.update({{"mfu", twelve_digits(report.mfu_full)},
              {"mfu_causal", twelve_digits(report.mfu_causal)},
              {"hfu", twelve_digits(report.hfu)},
              {"tokens_per_s", twelve_digits(report.tokens_per_s)},
              {"tokens_per_s_per_gpu", twelve_digits(report.tokens_per_s_per_gpu)},
              {"tflops_per_gpu", twelve_digits(report.tflops_per_gpu_full)},
              {"tflops_per_gpu_causal", twelve_digits(report.tflops_per_gpu_causal)},
              {"tokens_per_step", twelve_digits(report.tokens_per_step)},
              {"gpus", result.scenario.gpus()},
              {"nodes", result.scenario.nodes},
              {"peak_memory_gib", gib(result.memory.peak.total())},
              {"needed_memory_gib", gib(result.memory.peak.needed())},
              {"peak_memory_stage", result.memory.fullest_stage},
              {"usable_memory_gib", gib(result.memory.usable)},
              {"memory_capacity_gib", gib(tightest_node(result.scenario).gpu.hbm_capacity)}});
  add_training(out, result);
  if (result.power) add_site_limit(*result.power, *result.scenario.power, out);
  return out;
}

}  // namespace

nlohmann::ordered_json interval_json(const PredictionInterval& interval) {
  return {{"coverage", kCoverage},
          {"low", twelve_digits(interval.low)},
          {"high", twelve_digits(interval.high)},
          {"software", name_of(interval.known)},
          {"gaps", interval.gaps},
          {"group", interval.group},
          {"rows", interval.rows},
          {"sources", interval.sources},
          {"why", words_of(interval)}};
}

nlohmann::ordered_json result_json(const RunResult& result) {
  const StepReport& report = result.report;
  Json out = headline_json(result);
  out["memory_fits"] = result.memory.fits;
  out["memory_band"] = band_json(result.memory.band);
  if (result.interval) out["interval"] = interval_json(*result.interval);
  out["scenario"] = scenario_json(result.scenario);
  const TrainingJob& job = result.scenario.job;
  if (job.model.experts.count > 0) out["scenario"]["routing"] = routing_json(job);
  if (job.batch.sample_tokens > 0) {
    out["scenario"]["batch"]["sample_tokens"] = twelve_digits(job.batch.sample_tokens);
  }
  out["hardware"] = hardware_json(result);
  if (result.power) out["power"] = power_json(result);
  out["waterfall"] = waterfall_json(report.seconds);
  if (!report.pools.empty()) out["pools"] = pools_json(result);
  out["stages"] = stages_json(report);
  out["critical_path"] = critical_path_json(report);
  if (const LargestLoss loss = largest_loss(report); loss.bucket != nullptr) {
    out["largest_loss"] = {{"bucket", loss.bucket->name},
                           {"share", twelve_digits(loss.share)},
                           {"attacked_by", loss.bucket->remedy}};
  }
  if (result.jitter) {
    out["jitter"] = {{"most_s", twelve_digits(result.jitter->most.base_units())},
                     {"aligned_step_s", twelve_digits(result.jitter->aligned_s)}};
  }
  if (result.hash) {
    out["hashing"] = hash_json(*result.hash);
    if (result.hash->draws > 1) add_band(result.hash->bands[0], out["hashing"]);
  }
  if (result.full_fabric) out["fabric"] = fabric_json(result);
  out["assumptions"] = result.scenario.assumptions;
  out["notes"] = report.notes;
  if (result.scenario.expect) out["expectation"] = expectation_json(result);
  out["simulation"] = {{"method", name_of(report.method)},
                       {"folded", report.folded},
                       {"replicas", report.replicas},
                       {"replicas_simulated", report.replicas_simulated},
                       {"actors", report.actors_simulated},
                       {"items", report.items},
                       {"flows", report.flows},
                       {"events", report.events}};
  return out;
}

CsvText result_csv(const RunResult& result) {
  std::vector<std::string> names, values;
  const Json headline = headline_json(result);
  for (const auto& [name, value] : headline.items()) {
    names.push_back(name);
    values.push_back(number_text(value.get<double>()));
  }
  const std::vector<double> shares = bucket_shares(result.report.seconds);
  for (std::size_t i = 0; i < shares.size(); ++i) {
    names.push_back(std::string(buckets()[i].name) + "_share");
    values.push_back(number_text(shares[i]));
  }
  return csv_line(names) + csv_line(values);
}

}  // namespace lockstep
