#include "sim/answer/step_answer.hpp"

#include <cmath>
#include <fmt/format.h>
#include <numeric>
#include <utility>

#include "models/base/input_error.hpp"
#include "models/base/number_text.hpp"
#include "sim/step/pool_memory.hpp"
#include "sim/step/step.hpp"

namespace lockstep {

RunResult step_to_answer(Scenario scenario, WrittenScenario written) {
  RunResult result{.scenario = std::move(scenario), .report = {}, .memory = {}};
  result.written = std::move(written);
  result.memory = check_memory(result.scenario);
  return result;
}

void answer_step(const StepQuestion& asked, const StepIntervals& intervals, RunResult& result) {
  const Scenario& scenario = result.scenario;
  const bool powered = scenario.power.has_value(), recorded = asked.timeline || powered;
  result.report = simulate_step(scenario, {.record_timeline = recorded,
                                           .keep_actors = recorded,
                                           .explain_links = asked.explain_fabric,
                                           .draw_fabric = asked.draw_fabric,
                                           .link_rates = asked.link_rates,
                                           .jitter = asked.jitter,
                                           .progress = asked.progress});
  if (asked.jitter > Seconds{}) {
    const StepReport aligned =
        simulate_step(scenario, {.only_time = true, .progress = asked.progress});
    result.jitter = {.most = asked.jitter, .aligned_s = aligned.step_s};
  }
  const StepOptions how{.jitter = asked.jitter, .progress = asked.progress};
  // Also where only NICs can hold its transfers back, if somebody asks what does.
  const bool explains = asked.explain_fabric && scenario.nodes > 1;
  if ((asked.full_fabric && switches_can_limit(scenario)) || explains) {
    result.full_fabric = on_full_fabric(scenario, how);
  }
  if (explains) result.relief = fabric_relief(scenario, how);
  result.hash = draw_of(scenario.fabric, scenario.nodes, scenario.node);
  result.interval = intervals.of(scenario);
  if (result.interval) widen(*result.interval, result.report.band, result.report.step_s);
  if (powered) result.power = step_power(scenario, result.report);
}

std::optional<HashAnswer> draw_of(const FabricSpec& fabric, int nodes, const NodeSpec& node) {
  if (!is_hashed(fabric, nodes, nic_ports(node))) return std::nullopt;
  return HashAnswer{.draw = fabric.hash_draw, .draws = 1};
}

void widen(PredictionInterval& interval, const std::optional<StepBand>& band, double step_s) {
  if (!band) return;
  interval.low *= band->low_s / step_s;
  interval.high *= band->high_s / step_s;
}

const NodeSpec& tightest_node(const Scenario& scenario) {
  if (scenario.pools.empty()) return scenario.node;
  return scenario.node_of(tightest_pool(pool_memory(scenario)));
}

void require_memory(const RunResult& result) {
  const MemoryVerdict& memory = result.memory;
  if (memory.fits) return;
  const GpuSpec& gpu = tightest_node(result.scenario).gpu;
  const auto gib = [](Bytes bytes) { return significant(bytes / gibibytes(1)) + " GiB"; };
  const std::string fit = memory.nearest_fit.empty()
                              ? "no single change that was tried fits"
                              : "the nearest change that fits: " + memory.nearest_fit;
  const MemoryBand& band = memory.band;
  const std::string close = band.close() ? fmt::format(
                                               "; it is close: {} to {} by what is assumed, "
                                               "and {} decides",
                                               gib(band.least), gib(band.most), band.decides)
                                         : std::string();
  throw InputError(
      {.file = result.scenario.file,
       .pointer = {},
       .found = fmt::format("a job that needs {} on a GPU of stage {}", gib(memory.peak.needed()),
                            memory.fullest_stage),
       .allowed = fmt::format("at most {} of the {} of {}; {} (--allow-oom predicts anyway){}",
                              gib(memory.usable), gib(gpu.hbm_capacity), gpu.name, fit, close),
       .nearest = {}});
}

std::optional<TrainingCost> training_cost(const RunResult& result) {
  if (!result.scenario.training_tokens) return std::nullopt;
  const double steps = *result.scenario.training_tokens / result.report.tokens_per_step;
  TrainingCost cost;
  cost.seconds = steps * result.report.step_s;
  cost.gpu_hours = cost.seconds / 3600 * result.scenario.gpus();
  if (result.scenario.usd_per_gpu_hour)
    cost.usd = cost.gpu_hours * *result.scenario.usd_per_gpu_hour;
  return cost;
}

std::vector<ExpectationCheck> check_expectation(const RunResult& result) {
  std::vector<ExpectationCheck> checks;
  if (!result.scenario.expect) return checks;
  const Expectation& expect = *result.scenario.expect;
  const auto add = [&](const char* what, double expected, double predicted) {
    const double error = predicted / expected - 1;
    checks.push_back({what, expected, predicted, error, std::abs(error) <= expect.within});
  };
  if (expect.step_time) add("step time", expect.step_time->base_units(), result.report.step_s);
  if (expect.mfu) add("MFU", *expect.mfu, result.report.mfu_full);
  return checks;
}

LargestLoss largest_loss(const StepReport& report) {
  LargestLoss loss;
  for (const BucketInfo& info : buckets()) {
    const double share = report.seconds[static_cast<std::size_t>(info.bucket)] / report.step_s;
    if (!info.remedy.empty() && share > loss.share) loss = {&info, share};
  }
  return loss;
}

std::vector<double> bucket_shares(const BucketTimes& seconds) {
  const double total = std::accumulate(seconds.begin(), seconds.end(), 0.0);
  std::vector<double> shares;
  for (const BucketInfo& info : buckets()) {
    shares.push_back(seconds[static_cast<std::size_t>(info.bucket)] / total);
  }
  return shares;
}

}  // namespace lockstep
