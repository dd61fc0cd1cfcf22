#include "sim/answer/scaling.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/number_text.hpp"
#include "models/base/write_json.hpp"
#include "sim/answer/step_answer.hpp"
#include "sim/power/step_power.hpp"
#include "sim/scenario/scenario_file.hpp"
#include "sim/step/step.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

/// NVIDIA, H100 Tensor Core GPU data sheet: dense BF16 of the SXM card.
constexpr FlopsPerSecond kH100Peak = teraflops_per_second(989.4);

/// Reads the scenario with changes.
class ScaledScenario {
 public:
  ScaledScenario(const std::string& file, const std::string& text, const PresetStore& presets,
                 const Question& question)
      : file_(file),
        text_(text),
        presets_(presets),
        question_(question),
        kind_(parse_scenario(file, text, question.set).kind),
        base_(read(question.set)) {
    if (runs()) intervals_.emplace(presets);
    if (base_.unequal()) {
      throw InputError({.file = file_,
                        .pointer = {},
                        .found = "cluster.pools or batch.micro_batches",
                        .allowed = "a job of equal replicas on one kind of node, to be scaled",
                        .nearest = {}});
    }
  }

  [[nodiscard]] const Scenario& base() const { return base_; }

  [[nodiscard]] bool runs() const { return kind_ == ScenarioKind::run; }

  /// What makes it one on so many replicas of so many sequences in all.
  [[nodiscard]] std::vector<std::string> changes(int nodes, int data, int sequences) const {
    std::vector<std::string> set = question_.set;
    const Json cluster = parse_scenario(file_, text_, question_.set).root.json().at("cluster");
    if (cluster.is_string()) {
      set.push_back("cluster=" + write_json(Json{{"preset", cluster}, {"nodes", nodes}}));
    } else {
      set.push_back(fmt::format("cluster.nodes={}", nodes));
    }
    set.push_back(fmt::format("parallelism.data={}", data));
    set.push_back(fmt::format("batch.sequences={}", sequences));
    return set;
  }

  /// The step's scenario with these changes.
  [[nodiscard]] Scenario read(const std::vector<std::string>& set) const {
    const ParsedScenario parsed = parse_scenario(file_, text_, set);
    require_kind(parsed.root, {ScenarioKind::step, ScenarioKind::run},
                 "no such key: --scaling is of one step or of a run of weeks; --vary "
                 "cluster.nodes=64,128 simulates the others on several sizes");
    const ScenarioOptions reading{.profiles = question_.profiles, .folding = question_.folding};
    return *read_scenario_file(parsed, presets_, reading).job;
  }

  /// Fills in what a run of weeks says.
  void answer_run(std::vector<std::string> set, ScalingPoint& out) const {
    Question question = question_;
    question.set = std::move(set);
    const auto answer = answer_text(file_, text_, presets_, *intervals_, question);
    if (!answer) return;
    out.goodput = answer->number("goodput");
    out.done_s = answer->number("done_s");
    if (!out.done_s) out.done_s = answer->number("wall_s");  // it begins at once
    out.tokens_done = answer->number("tokens_done");
    for (const char* const money : {"purchase.usd", "owned_usd", "price_usd"}) {
      if (!out.usd) out.usd = answer->number(money);
    }
  }

 private:
  const std::string& file_;
  const std::string& text_;
  const PresetStore& presets_;
  const Question& question_;
  ScenarioKind kind_;
  std::optional<StepIntervals> intervals_{};  ///< of a run
  Scenario base_;
};

void simulate_point(const Scenario& scenario, bool allow_oom, ScalingPoint& out,
                    BucketTimes& per_token) {
  if (!allow_oom && !step_to_answer(scenario, {}).memory.fits) {
    out.problem = "does not fit in memory";
    return;
  }
  const bool powered = scenario.power.has_value();
  const StepReport step =
      simulate_step(scenario, {.record_timeline = powered, .keep_actors = powered});
  out.step_s = step.step_s;
  out.mfu = step.mfu_full;
  out.tokens_per_s = step.tokens_per_s;
  for (std::size_t b = 0; b < per_token.size(); ++b) {
    per_token[b] = step.seconds[b] * out.gpus / step.tokens_per_step;
  }
  out.h100_equivalents = h100_equivalents(scenario, out.gpus);
  if (scenario.usd_per_gpu_hour) {
    out.usd_per_trillion_tokens =
        *scenario.usd_per_gpu_hour * out.gpus / 3600 / step.tokens_per_s * 1e12;
  }
  if (!powered) return;
  const StepPower power = step_power(scenario, step);
  out.joules_per_token = power.energy().base_units() / step.tokens_per_step;
  if (!scenario.power->site_limit) return;
  out.site_limit_w = scenario.power->site_limit->base_units();
  out.site_excess_w = power.above(*scenario.power->site_limit).base_units();
}

/// Where, what and what instead, of a size that cannot be.
std::string one_line(const InputError& error) {
  const InputProblem& problem = error.problem();
  return fmt::format("{}: found {}; allowed: {}", problem.pointer.substr(1), problem.all_found(),
                     problem.allowed);
}

std::vector<ScalingPoint> series(const ScaledScenario& scaled, const Question& question,
                                 std::span<const int> gpus, bool weak) {
  const Scenario& base = scaled.base();
  const Parallelism& cut = base.job.parallelism;
  const int replica = cut.tensor * cut.context * cut.pipeline;
  std::vector<ScalingPoint> out;
  std::optional<std::size_t> first;
  std::vector<BucketTimes> per_token(gpus.size());
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    ScalingPoint& point = out.emplace_back();
    point.gpus = gpus[i];
    if (gpus[i] % replica != 0 || gpus[i] % base.node.gpus != 0) {
      point.problem = fmt::format("not whole replicas of {} on nodes of {}",
                                  counted(replica, "GPU"), base.node.gpus);
      continue;
    }
    point.nodes = gpus[i] / base.node.gpus;
    point.data = gpus[i] / replica;
    point.sequences =
        weak ? base.job.batch.sequences / cut.data * point.data : base.job.batch.sequences;
    try {
      std::vector<std::string> set = scaled.changes(point.nodes, point.data, point.sequences);
      simulate_point(scaled.read(set), question.allow_oom, point, per_token[i]);
      if (point.problem.empty() && scaled.runs()) scaled.answer_run(std::move(set), point);
    } catch (const InputError& error) {
      point.problem = one_line(error);
    }
    if (!point.problem.empty()) continue;
    if (!first) first = i;
    double all = 0, all_first = 0;
    for (std::size_t b = 0; b < point.lost.size(); ++b) {
      all += per_token[i][b];
      all_first += per_token[*first][b];
    }
    point.efficiency = all_first / all;
    for (std::size_t b = 0; b < point.lost.size(); ++b) {
      point.lost[b] = (per_token[i][b] - per_token[*first][b]) / all;
    }
  }
  return out;
}

Json point_json(const ScalingPoint& point) {
  Json out{{"gpus", point.gpus}};
  if (!point.problem.empty()) {
    out["problem"] = point.problem;
    return out;
  }
  out.update({{"nodes", point.nodes},
              {"data", point.data},
              {"sequences", point.sequences},
              {"step_s", twelve_digits(point.step_s)},
              {"mfu", twelve_digits(point.mfu)},
              {"tokens_per_s", twelve_digits(point.tokens_per_s)},
              {"efficiency", twelve_digits(point.efficiency)},
              {"h100_equivalents", twelve_digits(point.h100_equivalents)}});
  if (point.usd_per_trillion_tokens) {
    out["usd_per_trillion_tokens"] = twelve_digits(*point.usd_per_trillion_tokens);
  }
  if (point.joules_per_token) out["joules_per_token"] = twelve_digits(*point.joules_per_token);
  for (const auto& [name, number] : {std::pair{"goodput", point.goodput},
                                     {"done_s", point.done_s},
                                     {"tokens_done", point.tokens_done},
                                     {"usd", point.usd}}) {
    if (number) out[name] = twelve_digits(*number);
  }
  Json lost = Json::object();
  for (std::size_t b = 0; b < point.lost.size(); ++b) {
    if (point.lost[b] != 0) lost[std::string(buckets()[b].name)] = twelve_digits(point.lost[b]);
  }
  out["lost"] = std::move(lost);
  return out;
}

}  // namespace

double h100_equivalents(const Scenario& scenario, double gpus) {
  const auto of_card = [](const GpuSpec& gpu) -> double {
    // Volta has FP16 alone.
    return std::max(gpu.peak(Precision::bf16), gpu.peak(Precision::fp16)) / kH100Peak;
  };
  if (scenario.pools.empty()) return of_card(scenario.node.gpu) * gpus;
  double peaks = 0, all = 0;
  for (const NodePool& pool : scenario.pools) {
    const double of_pool = static_cast<double>(pool.nodes) * pool.node.gpus;
    peaks += of_pool * of_card(pool.node.gpu);
    all += of_pool;
  }
  return gpus * peaks / all;
}

Scaling scale(const std::string& file, const std::string& text, const PresetStore& presets,
              const Question& question, std::span<const int> gpus) {
  const ScaledScenario scaled(file, text, presets, question);
  Scaling out{.strong = series(scaled, question, gpus, false),
              .weak = series(scaled, question, gpus, true)};
  const auto fails = [](const ScalingPoint& point) { return !point.problem.empty(); };
  if (std::ranges::all_of(out.weak, fails) && std::ranges::all_of(out.strong, fails)) {
    throw InputError({.file = file,
                      .pointer = {},
                      .found = fmt::format("{} GPUs", out.weak.front().gpus),
                      .allowed = "a number that the job can run on: " + out.weak.front().problem,
                      .nearest = {}});
  }
  return out;
}

Json scaling_json(const Scaling& scaling) {
  Json strong = Json::array(), weak = Json::array();
  for (const ScalingPoint& point : scaling.strong) strong.push_back(point_json(point));
  for (const ScalingPoint& point : scaling.weak) weak.push_back(point_json(point));
  return {{"strong", std::move(strong)}, {"weak", std::move(weak)}};
}

}  // namespace lockstep
