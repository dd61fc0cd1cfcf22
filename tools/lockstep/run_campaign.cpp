#include "tools/lockstep/run_campaign.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <thread>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/input/input_error.hpp"
#include "models/workload/flops.hpp"
#include "sim/power/run_power.hpp"
#include "sim/scenario/read_scenario.hpp"
#include "sim/step/step.hpp"
#include "tools/lockstep/assertion.hpp"
#include "tools/lockstep/campaign_result.hpp"
#include "tools/lockstep/interrupt.hpp"
#include "tools/lockstep/output_file.hpp"
#include "tools/lockstep/power_trace.hpp"
#include "tools/lockstep/progress.hpp"
#include "tools/lockstep/report/assets.hpp"
#include "tools/lockstep/report/run_page.hpp"
#include "tools/lockstep/shared_options.hpp"

namespace lockstep {
namespace {

constexpr int kMostTrajectories = 1'000'000;
constexpr std::size_t kMostGridAxes = 2;
constexpr std::size_t kMostGridPoints = 400;

/// Prices the mean run.
RunBill bill_of(const CampaignResult& result) {
  TrajectoryResult mean;
  for (std::size_t b = 0; b < mean.buckets.size(); ++b) {
    mean.buckets[b] = to_run_time(Seconds{result.summary.shares[b] * result.summary.wall_s.mean});
    mean.wall += mean.buckets[b];
  }
  const Scenario& scenario = result.scenario;
  const CostSpec& prices = scenario.power->cost;
  const Usage usage =
      run_usage(mean, result.power->levels, prices, result.steps() * result.tokens_per_step(),
                result.steps() * step_flops(scenario.job).full);
  return {.usage = usage, .cost = cost_of(prices, result.power->holdings, usage)};
}

/// The only value that a run is optimised over so far; others are a sweep's work.
constexpr std::string_view kOptimised = "run.checkpoint.interval";

bool is_optimisable(const CampaignPlan& plan) {
  return !plan.campaign.tiers.empty() && plan.campaign.tiers.front().blocks > Seconds{} &&
         !plan.campaign.modes.empty();
}

void check_optimisable(const ParsedOptions& options, const CampaignPlan& plan,
                       const std::string& file) {
  const std::string path = options.get("optimise");
  if (path != kOptimised) {
    throw UsageError(fmt::format("--optimise: found \"{}\"; allowed: {}", path, kOptimised));
  }
  if (!is_optimisable(plan)) {
    throw InputError({.file = file,
                      .pointer = "/run",
                      .found = "nothing to optimise",
                      .allowed = "a checkpoint that the job waits for, and failures",
                      .nearest = {}});
  }
}

/// "PATH=V1,V2": an axis.
GoodputGrid::Axis parse_axis(const std::string& option) {
  const std::size_t equals = option.find('=');
  if (equals == 0 || equals == std::string::npos) {
    throw UsageError(fmt::format(
        "--vary: found {}; allowed: path=value,value,..., such as run.checkpoint.interval=\"5 "
        "min,10 min\"",
        in_quotes(option)));
  }
  GoodputGrid::Axis axis{.path = option.substr(0, equals), .values = {}};
  for (std::size_t begin = equals + 1; begin <= option.size();) {
    const std::size_t end = std::min(option.find(',', begin), option.size());
    const std::string value = option.substr(begin, end - begin);
    if (value.empty()) {
      throw UsageError(fmt::format("--vary: found {}; allowed: no empty value", in_quotes(option)));
    }
    axis.values.push_back(value);
    begin = end + 1;
  }
  return axis;
}

/// The points of --vary, each with its scenario read anew, so that any value may change. All of
/// them are read, and so checked, before the first one is simulated.
class GridPlan {
 public:
  GridPlan(const CampaignInput& input, const std::vector<std::string>& options) {
    if (options.size() > kMostGridAxes) {
      throw UsageError(
          fmt::format("--vary: found {} of them; allowed: one or two", options.size()));
    }
    std::size_t count = options.empty() ? 0 : 1;
    for (const std::string& option : options) {
      axes_.push_back(parse_axis(option));
      count *= axes_.back().values.size();
    }
    if (count > kMostGridPoints) {
      throw UsageError(
          fmt::format("--vary: found {} points; allowed: at most {}", count, kMostGridPoints));
    }
    for (std::size_t i = 0; i < count; ++i) campaigns_.push_back(plan_of(input, i));
  }
  [[nodiscard]] bool empty() const { return campaigns_.empty(); }

  /// Nothing when it was interrupted.
  [[nodiscard]] std::optional<GoodputGrid> simulate(SampleOptions sampling,
                                                    Console& console) const {
    Progress progress(console.err, "points", campaigns_.size(), console.err_is_terminal);
    sampling.progress = [] { return !InterruptGuard::interrupted(); };
    GoodputGrid grid{.axes = axes_, .goodput = {}};
    for (const Campaign& campaign : campaigns_) {
      const std::vector<TrajectoryResult> results = sample(campaign, sampling);
      if (InterruptGuard::interrupted()) return std::nullopt;
      grid.goodput.push_back(summarise(campaign, results).goodput);
      progress.one_done();
    }
    return grid;
  }

 private:
  [[nodiscard]] Campaign plan_of(const CampaignInput& input, std::size_t point) const {
    std::vector<std::string> sets = input.sets;
    for (std::size_t a = axes_.size(); a-- > 0;) {
      const std::vector<std::string>& values = axes_[a].values;
      sets.push_back(axes_[a].path + "=" + values[point % values.size()]);
      point /= values.size();
    }
    const JsonCursor root = JsonCursor::parse(input.path, input.text, JsonStyle::plain, sets);
    const Scenario scenario = read_scenario(input.path, input.text, input.presets, {.set = sets});
    return plan_campaign(scenario, read_run_spec(root.at("run"), input.presets)).campaign;
  }

  std::vector<GoodputGrid::Axis> axes_;
  std::vector<Campaign> campaigns_;
};

/// Sizes that published projections are for.
constexpr std::array<int, 4> kProjectedGpus{1024, 8192, 16'384, 131'072};

std::vector<ProjectedMttf> project(const Scenario& scenario, const RunSpec& run) {
  std::vector<ProjectedMttf> out;
  for (const int gpus : kProjectedGpus) {
    const int nodes = gpus / scenario.node.gpus;
    if (nodes < 1 || run.reliability.modes.empty() || !run.reliability.log.empty()) continue;
    const std::vector<FailureMode> modes = failing_modes(run, scenario.node, nodes, gpus);
    out.push_back({.gpus = gpus, .mttf = mean_time_between_stops(modes)});
  }
  return out;
}

}  // namespace

Exit run_campaign(const CampaignInput& input, const Scenario& scenario,
                  const ParsedOptions& options, Console& console) {
  const std::string format = options.choice("format", kFormats);
  const std::vector<Assertion> assertions = parse_assertions(options.all("assert"));
  const bool reports = options.has("report"), traces = options.has("power-trace");
  if (reports) (void)chart_library();
  const RunSpec run = read_run_spec(input.root.at("run"), input.presets);
  CampaignResult result{.scenario = scenario, .plan = plan_campaign(scenario, run), .summary = {}};
  const Campaign& campaign = result.plan.campaign;
  const bool optimises = options.has("optimise");
  if (optimises) check_optimisable(options, result.plan, scenario.file);
  const GridPlan grid(input, options.all("vary"));

  SampleOptions sampling;
  sampling.trajectories = static_cast<std::uint32_t>(
      whole_number(options, "trajectories", run.trajectories, kMostTrajectories));
  sampling.within = run.within;
  sampling.jobs =
      whole_number(options, "jobs",
                   static_cast<int>(std::max(1U, std::thread::hardware_concurrency())), kMostJobs);

  const InterruptGuard guard;
  {
    Progress progress(console.err, "trajectories", sampling.trajectories, console.err_is_terminal);
    sampling.progress = [&] {
      progress.one_done();
      return !InterruptGuard::interrupted();
    };
    const std::vector<TrajectoryResult> results = sample(campaign, sampling);
    if (results.empty()) return Exit::interrupted;
    result.summary = summarise(campaign, results);
    if (reports || traces) result.typical_number = median_trajectory(results);
  }
  if (reports || traces) {
    result.typical = run_trajectory(campaign, result.typical_number, RunDetail::timeline);
  }
  const bool powered = scenario.power.has_value();
  result.step = simulate_step(scenario, {.record_timeline = powered, .keep_actors = powered});
  const double peak = scenario.node.gpu.peak(scenario.job.precision).base_units();
  result.mfu =
      step_flops(scenario.job).full.base_units() / (result.plan.step_s * scenario.gpus() * peak);
  result.projections = project(scenario, run);
  if (powered) {
    result.power = step_power(scenario, result.step);
    result.bill = bill_of(result);
  }
  sampling.progress = nullptr;
  const bool curve = optimises || (reports && is_optimisable(result.plan));
  if (curve && !InterruptGuard::interrupted()) {
    result.optimum = optimise_interval(campaign, sampling);
  }
  if (!grid.empty() && !InterruptGuard::interrupted()) {
    result.grid = grid.simulate(sampling, console);
  }
  result.interrupted = InterruptGuard::interrupted();

  const nlohmann::ordered_json json = campaign_json(result);
  const std::vector<std::string> misses = all_missed(assertions, json);
  if (reports) {
    OutputFile file(options.get("report"));
    file.write(run_page(result));
    file.commit();
  }
  if (traces) write_power_trace(options.get("power-trace"), result);
  std::string text;
  if (format == "json") text = json.dump(2) + "\n";
  if (format == "csv") text = campaign_csv(json);
  if (format == "table") text = campaign_table(result, output_style(options, console));
  write_output(text, options, console);
  const Exit missed = report_misses(misses, console);
  return result.interrupted ? Exit::interrupted : missed;
}

}  // namespace lockstep
