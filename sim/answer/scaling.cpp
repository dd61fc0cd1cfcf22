#include "sim/answer/scaling.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/number_text.hpp"
#include "models/base/write_json.hpp"
#include "sim/answer/campaign_answer.hpp"
#include "sim/answer/step_answer.hpp"
#include "sim/power/step_power.hpp"
#include "sim/run/campaign_work.hpp"
#include "sim/run/summary.hpp"
#include "sim/scenario/scenario_file.hpp"
#include "sim/site/fleet.hpp"
#include "sim/step/step.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

/// NVIDIA, H100 Tensor Core GPU data sheet: dense BF16 of the SXM card.
constexpr FlopsPerSecond kH100Peak = teraflops_per_second(989.4);

/// The most nodes of lots that are there at one moment.
int most_at_once(const PurchaseSpec& spec) {
  const std::vector<Shipment> shipments = shipments_of(spec);
  int most = 0;
  for (const Shipment& begins : shipments) {
    int there = 0;
    for (const Shipment& s : shipments) {
      if (s.from_s <= begins.from_s && begins.from_s < s.until_s) there += s.nodes;
    }
    most = std::max(most, there);
  }
  return most;
}

/// The one figure of a run's money, as a reader of `run` adds it up, and what it is of.
void fill_in_money(const CampaignResult& result, ScalingPoint& out) {
  const CostSpec prices = result.bill ? prices_of(result) : CostSpec{};
  const std::optional<double> rent = result.rent_usd();
  const bool charged = result.bill && result.bill->cost.total_usd() != 0;
  if (result.fleet) {
    out.usd = sum_of(months_of(result)).usd();
    out.usd_of = "machines of lots";
  } else if (charged && prices_machines(prices)) {
    out.usd = result.bill->cost.total_usd();
    out.usd_of = words_of(MoneyOf::owned, &prices);
  } else if (rent) {
    out.usd = rent;
    out.usd_of = words_of(MoneyOf::rent, &prices);
  } else if (charged) {
    out.usd = result.bill->cost.total_usd();
    out.usd_of = words_of(MoneyOf::partial, &prices);
  }
  const double storage = result.storage_usd();
  if (storage <= 0) return;
  out.usd_of = out.usd ? out.usd_of + ", with storage" : "storage only";
  out.usd = out.usd.value_or(0) + storage;
}

/// A run's own values take the place of those of a healthy step.
void fill_in(const CampaignResult& result, ScalingPoint& out) {
  out.goodput = result.summary.goodput.mean;
  out.done_s = result.done().base_units();
  out.tokens_done = result.steps() * result.tokens_per_step();
  fill_in_money(result, out);
  out.usd_per_trillion_tokens.reset();
  if (out.usd && *out.tokens_done > 0) {
    out.usd_per_trillion_tokens = *out.usd / *out.tokens_done * 1e12;
  }
  out.joules_per_token.reset();
  if (result.bill && result.bill->usage.tokens > 0) {
    out.joules_per_token = result.bill->usage.energy.base_units() / result.bill->usage.tokens;
  }
}

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

  /// Fills in what a run of weeks says. Throws InputError for more nodes than its lots bring.
  void answer_run(const std::vector<std::string>& set, ScalingPoint& out) const {
    const ParsedScenario parsed = parse_scenario(file_, text_, set);
    const ScenarioFile read = read_scenario_file(
        parsed, presets_, {.profiles = question_.profiles, .folding = question_.folding});
    const RunSpec& run = *read.run;
    if (run.purchase) require_lots(*run.purchase, out);
    CampaignResult result =
        planned_run(*read.job, run, std::make_shared<const Json>(parsed.root.json()));
    const SampleOptions sampling{.trajectories = static_cast<std::uint32_t>(
                                     question_.trajectories.value_or(run.trajectories)),
                                 .within = run.within,
                                 .jobs = question_.jobs,
                                 .progress = [] { return true; }};
    check_work(result.plan.campaign, run,
               {.trajectories = static_cast<double>(sampling.trajectories)}, file_);
    if (!lockstep::answer_run(run, sampling, false, *intervals_, result)) return;
    fill_in(result, out);
  }

  /// What a run has that is the same on every number of GPUs.
  [[nodiscard]] std::vector<std::string> assumptions() const {
    if (!runs()) return {};
    const ParsedScenario parsed = parse_scenario(file_, text_, question_.set);
    const RunSpec run = *read_scenario_file(parsed, presets_, {.profiles = question_.profiles}).run;
    std::vector<std::string> out;
    if (run.purchase) {
      out.emplace_back(
          "run.purchase: lots stay as they are given at every size; nodes that a size has no use "
          "for stand idle, and are paid for");
    }
    std::string plants;
    const auto stays = [&plants](bool there, const char* key) {
      if (there) plants += (plants.empty() ? "" : ", ") + std::string(key);
    };
    if (run.site) {
      stays(run.site->cooling.has_value(), "run.site.cooling");
      stays(!run.site->path.empty(), "run.site.path");
      stays(run.site->battery.has_value(), "run.site.battery");
      stays(run.site->solar > Watts{} || run.site->wind > Watts{}, "run.site.renewables");
    }
    if (!plants.empty()) out.push_back(plants + ": as given at every size");
    return out;
  }

 private:
  /// A size that never exists has no answer. Requires out.nodes.
  void require_lots(const PurchaseSpec& spec, const ScalingPoint& out) const {
    const int most = most_at_once(spec);
    if (most >= out.nodes) return;
    throw InputError({.file = file_,
                      .pointer = "/run/purchase/lots",
                      .found = fmt::format("lots that bring {} at once", counted(most, "node")),
                      .allowed = fmt::format("at least the {} of {}", counted(out.nodes, "node"),
                                             counted(out.gpus, "GPU")),
                      .nearest = {}});
  }

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
      const std::vector<std::string> set = scaled.changes(point.nodes, point.data, point.sequences);
      simulate_point(scaled.read(set), question.allow_oom, point, per_token[i]);
      if (point.problem.empty() && scaled.runs()) scaled.answer_run(set, point);
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
  if (!point.usd_of.empty()) out["usd_of"] = point.usd_of;
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
              .weak = series(scaled, question, gpus, true),
              .assumptions = scaled.assumptions()};
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
  Json out{{"strong", std::move(strong)}, {"weak", std::move(weak)}};
  if (!scaling.assumptions.empty()) out["assumptions"] = scaling.assumptions;
  return out;
}

}  // namespace lockstep
