#include "tools/lockstep/run_campaign.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/power/cost.hpp"
#include "models/workload/flops.hpp"
#include "sim/power/run_power.hpp"
#include "sim/power/step_power.hpp"
#include "sim/run/optimum.hpp"
#include "sim/run/plan_campaign.hpp"
#include "sim/step/step.hpp"
#include "tools/lockstep/assertion.hpp"
#include "tools/lockstep/progress.hpp"
#include "tools/lockstep/shared_options.hpp"
#include "tools/lockstep/table.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;
using Align = TextTable::Align;

struct BucketName {
  std::string_view key, words;
};
constexpr std::array<BucketName, kRunBuckets> kBucketNames{
    {{"productive", "Training at full speed"},
     {"degraded", "Slower steps (stragglers, missing replicas)"},
     {"checkpoint", "Waiting for checkpoints"},
     {"lost", "Work done again"},
     {"detection", "Detecting failures"},
     {"diagnosis", "Diagnosing them"},
     {"restart", "Restarting and reading checkpoints"},
     {"repair_wait", "Waiting for a healthy node"}}};

constexpr int kCampaignLabels = 18;
constexpr int kMostTrajectories = 1'000'000;

/// What the mean run draws from the grid, and what it costs.
struct RunBill {
  PowerLevels levels;
  Usage usage;
  CostReport cost;
};

/// Everything that is printed.
struct CampaignResult {
  const Scenario& scenario;
  CampaignPlan plan;
  RunSummary summary;
  std::optional<IntervalOptimum> optimum;
  std::optional<RunBill> bill;  ///< where the scenario says "power"
  double mfu = 0;               ///< of a healthy step, attention in full

  /// Of the mean run.
  [[nodiscard]] double steps() const {
    return summary.wall_s.mean * summary.shares[0] / plan.step_s;
  }
};

std::string percent(double share, int digits = 1) {
  return fmt::format("{:.{}f} %", 100 * share, digits);
}
std::string with_interval(const SampleMean& of, double unit, const char* text) {
  return fmt::format("{} {} (+- {})", significant(of.mean / unit), text,
                     significant(of.half_width / unit, 2));
}

double tokens_per_step(const Scenario& scenario) {
  const Batch& batch = scenario.job.batch;
  return static_cast<double>(batch.sequences) * batch.tokens;
}

RunBill bill_of(const CampaignResult& result) {
  const Scenario& scenario = result.scenario;
  const StepPower power =
      step_power(scenario, simulate_step(scenario, {.record_timeline = true, .keep_actors = true}));
  TrajectoryResult mean;
  for (std::size_t b = 0; b < mean.buckets.size(); ++b) {
    mean.buckets[b] = to_run_time(Seconds{result.summary.shares[b] * result.summary.wall_s.mean});
    mean.wall += mean.buckets[b];
  }
  const CostSpec& prices = scenario.power->cost;
  const Usage usage =
      run_usage(mean, power.levels, prices, result.steps() * tokens_per_step(scenario),
                result.steps() * step_flops(scenario.job).full);
  return {.levels = power.levels, .usage = usage, .cost = cost_of(prices, power.holdings, usage)};
}

std::string bill_lines(const RunBill& bill) {
  constexpr double kMegawattHour = 3.6e9;
  const double mean_w = bill.usage.energy.base_units() / bill.usage.time.base_units();
  std::string out = labelled_line(
      "Energy", kCampaignLabels,
      fmt::format("{} MWh at the site's meter, {} MW on average; {} MW in a step",
                  grouped(std::round(bill.usage.energy.base_units() / kMegawattHour)),
                  significant(mean_w / 1e6), significant(bill.levels.training.base_units() / 1e6)));
  if (bill.cost.tonnes_co2 > 0) {
    out += labelled_line("Carbon", kCampaignLabels,
                         fmt::format("{} t of CO2", significant(bill.cost.tonnes_co2)));
  }
  if (bill.cost.total_usd() > 0) {
    out += labelled_line(
        "Cost", kCampaignLabels,
        fmt::format("{} USD owned ({} machines, {} energy); {} USD per trillion tokens",
                    compact(bill.cost.total_usd()), compact(bill.cost.capital_usd()),
                    compact(bill.cost.energy_usd), compact(bill.cost.usd_per_trillion_tokens)));
  }
  return out;
}

std::string headline(const CampaignResult& result) {
  const RunSummary& s = result.summary;
  const Scenario& scenario = result.scenario;
  std::string out;
  out += labelled_line("Goodput", kCampaignLabels,
                       fmt::format("{} of wall time advances training (+- {}, {} trajectories)",
                                   percent(s.goodput.mean, 2), percent(s.goodput.half_width, 2),
                                   grouped(static_cast<double>(s.trajectories))));
  out += labelled_line("Useful FLOPs", kCampaignLabels,
                       fmt::format("{} of the peak over the whole run (MFU {} x goodput)",
                                   percent(result.mfu * s.goodput.mean), percent(result.mfu)));
  out += labelled_line(
      "Wall time", kCampaignLabels,
      fmt::format("{} (5th to 95th percentile: {} to {})", duration_text(s.wall_s.mean),
                  duration_text(s.wall_s.low), duration_text(s.wall_s.high)));
  const double steps = result.steps();
  out += labelled_line(
      "Trained", kCampaignLabels,
      fmt::format("{} steps of {}, {} tokens", compact(steps), duration_text(result.plan.step_s),
                  compact(steps * tokens_per_step(scenario))));
  out += labelled_line("Interruptions", kCampaignLabels,
                       fmt::format("{}, one every {}", with_interval(s.interruptions, 1, "a run"),
                                   duration_text(s.mttf_s.mean)));
  if (!result.plan.campaign.tiers.empty()) {
    const CheckpointTier& tier = result.plan.campaign.tiers.front();
    out += labelled_line(
        "Checkpoints", kCampaignLabels,
        fmt::format(
            "{} a run, {} each to {}, every {}; {} waiting, {} to finish", compact(s.checkpoints),
            significant(result.plan.checkpoint.all.base_units() / 1e12) + " TB", tier.name,
            duration_text(tier.interval.base_units()), duration_text(tier.blocks.base_units()),
            duration_text(tier.finishes.base_units())));
  }
  if (scenario.usd_per_gpu_hour) {
    const double hours = s.wall_s.mean / 3600 * scenario.gpus();
    out += labelled_line("Price", kCampaignLabels,
                         fmt::format("{} USD for {} GPU-hours at {:.2f}",
                                     compact(hours * *scenario.usd_per_gpu_hour), compact(hours),
                                     *scenario.usd_per_gpu_hour));
  }
  if (result.bill) out += bill_lines(*result.bill);
  return out;
}

std::string books(const RunSummary& summary, const TextStyle& style) {
  const std::vector<double> shares = percentages_that_add_up(summary.shares);
  std::string out = style.bold("Where the wall time goes") + "\n";
  for (std::size_t b = 0; b < kBucketNames.size(); ++b) {
    out += fmt::format("  {:<44}{:>6.1f} %  {:>9}  {}\n", kBucketNames[b].words, shares[b],
                       duration_text(summary.shares[b] * summary.wall_s.mean),
                       bar(summary.shares[b], 34, style));
    out.erase(out.find_last_not_of(" \n") + 1);
    out += "\n";
  }
  return out;
}

std::string causes(const RunSummary& summary, const TextStyle& style) {
  TextTable table({{"cause", Align::left}, {"a run"}, {"cost each"}, {"of wall time"}});
  std::vector<const ModeSummary*> modes;
  for (const ModeSummary& mode : summary.modes) modes.push_back(&mode);
  std::ranges::stable_sort(modes, std::ranges::greater{}, &ModeSummary::cost_s);
  for (const ModeSummary* mode : modes) {
    const double each = mode->failures > 0 ? mode->cost_s / mode->failures : 0;
    table.add({mode->name, significant(mode->failures), duration_text(each),
               percent(mode->cost_s / summary.wall_s.mean, 2)});
  }
  return table.text(style);
}

std::string optimum_text(const IntervalOptimum& optimum, const TextStyle& style) {
  TextTable table({{"checkpoint interval", Align::left}, {"every"}, {"goodput"}, {"+-"}});
  const auto add = [&](const char* name, const IntervalPoint& point) {
    table.add({name, duration_text(point.interval.base_units()), percent(point.goodput, 2),
               percent(point.half_width, 2)});
  };
  add("best simulated", optimum.best);
  add("Young 1974", optimum.young);
  add("Daly 2006", optimum.daly);
  return table.text(style);
}

std::string campaign_table(const CampaignResult& result, const TextStyle& style) {
  const Scenario& scenario = result.scenario;
  std::string out =
      style.bold(fmt::format("{} on {} GPUs, {}", scenario.job.model.name, grouped(scenario.gpus()),
                             duration_text(result.summary.wall_s.mean))) +
      "\n";
  if (!scenario.about.empty()) out += wrap(scenario.about, 100, 0) + "\n";
  out += "\n" + headline(result) + "\n" + books(result.summary, style) + "\n" +
         causes(result.summary, style);
  if (result.optimum) out += "\n" + optimum_text(*result.optimum, style);
  if (result.plan.assumptions.empty() && scenario.assumptions.empty()) return out;
  out += "\nAssumed\n";
  for (const auto* list : {&scenario.assumptions, &result.plan.assumptions}) {
    for (const std::string& assumed : *list) out += "  - " + wrap(assumed, 96, 4) + "\n";
  }
  return out;
}

Json mean_json(const SampleMean& of) {
  return {{"mean", twelve_digits(of.mean)},
          {"half_width_95", twelve_digits(of.half_width)},
          {"p5", twelve_digits(of.low)},
          {"p50", twelve_digits(of.median)},
          {"p95", twelve_digits(of.high)}};
}
Json point_json(const IntervalPoint& point) {
  return {{"interval_s", twelve_digits(point.interval.base_units())},
          {"goodput", twelve_digits(point.goodput)},
          {"half_width_95", twelve_digits(point.half_width)}};
}

Json campaign_json(const CampaignResult& result) {
  const RunSummary& s = result.summary;
  const Scenario& scenario = result.scenario;
  const double hours = s.wall_s.mean / 3600 * scenario.gpus();
  Json out{{"goodput", twelve_digits(s.goodput.mean)},
           {"goodput_half_width_95", twelve_digits(s.goodput.half_width)},
           {"wall_s", twelve_digits(s.wall_s.mean)},
           {"interruptions", twelve_digits(s.interruptions.mean)},
           {"mttf_s", twelve_digits(s.mttf_s.mean)},
           {"mfu", twelve_digits(result.mfu)},
           {"useful_flops_share", twelve_digits(result.mfu * s.goodput.mean)},
           {"step_s", twelve_digits(result.plan.step_s)},
           {"gpus", scenario.gpus()},
           {"nodes", scenario.nodes},
           {"gpu_hours", twelve_digits(hours)},
           {"trajectories", s.trajectories},
           {"finished_share", twelve_digits(s.finished)},
           {"checkpoints", twelve_digits(s.checkpoints)},
           {"checkpoint_bytes", twelve_digits(result.plan.checkpoint.all.base_units())},
           {"unreadable_checkpoints", twelve_digits(s.fallbacks)}};
  if (scenario.usd_per_gpu_hour)
    out["price_usd"] = twelve_digits(hours * *scenario.usd_per_gpu_hour);
  if (result.bill) {
    const RunBill& bill = *result.bill;
    const double joules = bill.usage.energy.base_units();
    out["energy_j"] = twelve_digits(joules);
    out["facility_mean_w"] = twelve_digits(joules / bill.usage.time.base_units());
    out["joules_per_token"] = twelve_digits(bill.usage.tokens > 0 ? joules / bill.usage.tokens : 0);
    out["tonnes_co2"] = twelve_digits(bill.cost.tonnes_co2);
    out["owned_usd"] = twelve_digits(bill.cost.total_usd());
    out["owned_usd_per_trillion_tokens"] = twelve_digits(bill.cost.usd_per_trillion_tokens);
    out["owned_usd_per_eflop"] = twelve_digits(bill.cost.usd_per_eflop);
  }
  for (std::size_t b = 0; b < kBucketNames.size(); ++b) {
    out["wall_time"].push_back({{"bucket", kBucketNames[b].key},
                                {"share", twelve_digits(s.shares[b])},
                                {"seconds", twelve_digits(s.shares[b] * s.wall_s.mean)}});
  }
  for (const ModeSummary& mode : s.modes) {
    out["causes"].push_back({{"name", mode.name},
                             {"failures", twelve_digits(mode.failures)},
                             {"cost_s", twelve_digits(mode.cost_s)}});
  }
  for (const CheckpointTier& tier : result.plan.campaign.tiers) {
    out["checkpoint_tiers"].push_back({{"name", tier.name},
                                       {"interval_s", twelve_digits(tier.interval.base_units())},
                                       {"blocks_s", twelve_digits(tier.blocks.base_units())},
                                       {"finishes_s", twelve_digits(tier.finishes.base_units())},
                                       {"restores_s", twelve_digits(tier.restores.base_units())}});
  }
  out["distributions"] = {{"goodput", mean_json(s.goodput)},
                          {"wall_s", mean_json(s.wall_s)},
                          {"interruptions", mean_json(s.interruptions)},
                          {"mttf_s", mean_json(s.mttf_s)}};
  if (result.optimum) {
    Json curve = Json::array();
    for (const IntervalPoint& point : result.optimum->curve) curve.push_back(point_json(point));
    out["optimum"] = {{"path", "run.checkpoint.interval"},
                      {"best", point_json(result.optimum->best)},
                      {"young", point_json(result.optimum->young)},
                      {"daly", point_json(result.optimum->daly)},
                      {"curve", curve}};
  }
  out["assumptions"] = scenario.assumptions;
  for (const std::string& assumed : result.plan.assumptions) out["assumptions"].push_back(assumed);
  return out;
}

/// The first level's numbers, then the share of each bucket.
std::string campaign_csv(const Json& json) {
  std::vector<std::string> names, values;
  for (const auto& [key, value] : json.items()) {
    if (!value.is_number()) continue;
    names.push_back(key);
    values.push_back(number_text(value.get<double>()));
  }
  for (const Json& bucket : json.at("wall_time")) {
    names.push_back(bucket.at("bucket").get<std::string>() + "_share");
    values.push_back(number_text(bucket.at("share").get<double>()));
  }
  return csv_line(names) + csv_line(values);
}

/// The only value that a run is optimised over so far; others are a sweep's work.
constexpr std::string_view kOptimised = "run.checkpoint.interval";

void check_optimisable(const ParsedOptions& options, const CampaignPlan& plan,
                       const std::string& file) {
  const std::string path = options.get("optimise");
  if (path != kOptimised) {
    throw UsageError(fmt::format("--optimise: found \"{}\"; allowed: {}", path, kOptimised));
  }
  if (plan.campaign.tiers.empty() || plan.campaign.tiers.front().blocks <= Seconds{} ||
      plan.campaign.modes.empty()) {
    throw InputError({.file = file,
                      .pointer = "/run",
                      .found = "nothing to optimise",
                      .allowed = "a checkpoint that the job waits for, and failures",
                      .nearest = {}});
  }
}

}  // namespace

Exit run_campaign(const JsonCursor& root, const Scenario& scenario, const PresetStore& presets,
                  const ParsedOptions& options, Console& console) {
  const std::string format = options.choice("format", kFormats);
  const std::vector<Assertion> assertions = parse_assertions(options.all("assert"));
  const RunSpec run = read_run_spec(root.at("run"), presets);

  CampaignResult result{.scenario = scenario,
                        .plan = plan_campaign(scenario, run),
                        .summary = {},
                        .optimum = {},
                        .bill = {},
                        .mfu = 0};
  const double peak = scenario.node.gpu.peak(scenario.job.precision).base_units();
  result.mfu =
      step_flops(scenario.job).full.base_units() / (result.plan.step_s * scenario.gpus() * peak);
  SampleOptions sampling;
  sampling.trajectories = static_cast<std::uint32_t>(
      whole_number(options, "trajectories", run.trajectories, kMostTrajectories));
  sampling.within = run.within;
  sampling.jobs =
      whole_number(options, "jobs",
                   static_cast<int>(std::max(1U, std::thread::hardware_concurrency())), kMostJobs);
  if (options.has("optimise")) check_optimisable(options, result.plan, scenario.file);
  {
    Progress progress(console.err, "trajectories", sampling.trajectories, console.err_is_terminal);
    sampling.progress = [&](std::size_t, std::size_t) {
      progress.one_done();
      return true;
    };
    result.summary = summarise(result.plan.campaign, sample(result.plan.campaign, sampling));
  }
  sampling.progress = nullptr;
  if (scenario.power) result.bill = bill_of(result);
  if (options.has("optimise")) {
    result.optimum = optimise_interval(result.plan.campaign, sampling);
  }
  const Json json = campaign_json(result);
  const std::vector<std::string> misses = all_missed(assertions, json);
  std::string text;
  if (format == "json") text = json.dump(2) + "\n";
  if (format == "csv") text = campaign_csv(json);
  if (format == "table") text = campaign_table(result, output_style(options, console));
  write_output(text, options, console);
  return report_misses(misses, console);
}

}  // namespace lockstep
