#include "tools/lockstep/run_campaign.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/output_file.hpp"
#include "sim/run/campaign_work.hpp"
#include "sim/scenario/read_residuals.hpp"
#include "sim/site/site_plan.hpp"
#include "sim/step/step.hpp"
#include "tools/console/assertion.hpp"
#include "tools/console/hash_draws.hpp"
#include "tools/console/interrupt.hpp"
#include "tools/console/progress.hpp"
#include "tools/console/shared_options.hpp"
#include "tools/console/trajectory_options.hpp"
#include "tools/console/work_budget.hpp"
#include "tools/views/report/assets.hpp"
#include "tools/views/report/behind.hpp"
#include "tools/views/report/run_page.hpp"
#include "tools/views/run/campaign_result.hpp"
#include "tools/views/run/claim_text.hpp"
#include "tools/views/traces/power_trace.hpp"

namespace lockstep {
namespace {

/// The only value that a run is optimised over so far; others are a sweep's work.
constexpr std::string_view kOptimised = "run.checkpoint.interval";

bool is_optimisable(const CampaignPlan& plan) {
  return !plan.campaign.tiers.empty() && plan.campaign.tiers.front().blocks > Seconds{} &&
         std::ranges::any_of(plan.campaign.modes, &FailureMode::stops_job);
}

void check_optimisable(const ParsedOptions& options, const CampaignPlan& plan,
                       const std::string& file) {
  if (options.choice("format", kFormats) == "csv") {
    throw UsageError(
        "--format: found \"csv\" beside --optimise, whose curve has no place in its lines; "
        "allowed: table, json");
  }
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

SampleOptions sampling_options(const ParsedOptions& options, const RunSpec& run) {
  SampleOptions sampling;
  sampling.trajectories = static_cast<std::uint32_t>(trajectories_of(options, run.trajectories));
  sampling.within = run.within;
  sampling.jobs = trajectory_jobs_of(options);
  return sampling;
}

/// answer_run() with its progress: false when it was interrupted before there was a trajectory.
bool draw(const RunSpec& run, SampleOptions sampling, bool timeline, const StepIntervals& intervals,
          CampaignResult& result, Console& console) {
  Progress progress(console.err, "trajectories", sampling.trajectories, console.err_is_terminal);
  sampling.progress = [&] {
    progress.one_done();
    return !InterruptGuard::interrupted();
  };
  sampling.under_way = [&](double done) {
    progress.reached(done);
    return !InterruptGuard::interrupted();
  };
  return answer_run(run, sampling, timeline, intervals, result);
}

/// The numbers of a run that have bands over draws of the hashes.
std::vector<double> drawn_numbers(const CampaignPlan& plan, const RunSummary& summary) {
  return {plan.step_s, summary.wall_s.mean, summary.goodput.mean};
}

/// The run with another draw of the hashes.
CampaignPlan plan_of_draw(const RunWork& work, const RunSpec& run, int draw) {
  FabricSpec fabric = work.scenario.fabric;
  fabric.hash_draw = draw;
  if (work.rl != nullptr) return plan_sited(on_fabric(*work.rl, fabric), run).plan;
  Scenario drawn = work.scenario;
  drawn.fabric = fabric;
  return plan_sited(drawn, run).plan;
}

/// The run with each draw of the hashes that is asked for; all meet the same failures. Empty
/// where no hash decides anything, and where it was interrupted.
std::optional<HashAnswer> hash_of(const CampaignResult& result, const RunSpec& run,
                                  const HashDraws& draws, SampleOptions sampling,
                                  Console& console) {
  const Scenario& scenario = result.scenario;
  if (!is_hashed(scenario.fabric, scenario.nodes, nic_ports(scenario.node))) return std::nullopt;
  std::vector<double> first = drawn_numbers(result.plan, result.summary);
  sampling.jobs = 1;
  sampling.progress = [] { return !InterruptGuard::interrupted(); };
  sampling.under_way = [](double) { return !InterruptGuard::interrupted(); };
  HashAnswer answer = answer_of_draws(draws, first, console, [&](int draw) {
    if (InterruptGuard::interrupted()) return first;
    const CampaignPlan plan = plan_of_draw(result.work(), run, draw);
    return drawn_numbers(plan, summarise(plan.campaign, sample(plan.campaign, sampling)));
  });
  if (InterruptGuard::interrupted()) return HashAnswer{.draw = draws.first};
  return answer;
}

IntervalOptimum find_optimum(const CampaignPlan& plan, SampleOptions sampling, Console& console) {
  Progress progress(console.err, "trajectories of the interval curve",
                    kMostIntervals * sampling.trajectories, console.err_is_terminal);
  sampling.progress = [&] {
    progress.one_done();
    return !InterruptGuard::interrupted();
  };
  return optimise_interval(plan.campaign, sampling, plan.writes.front().least_interval());
}

void write_files(const CampaignResult& result, const ParsedOptions& options, const Behind* behind,
                 const ClaimCheck* claim) {
  if (options.has("report")) {
    OutputFile file(options.get("report"));
    file.write(run_page(result, behind, claim));
    file.commit();
  }
  if (options.has("power-trace")) write_power_trace(options.get("power-trace"), result);
}

}  // namespace

Exit run_campaign(const PresetStore& presets, const RunWork& work, const WrittenScenario& written,
                  const RunSpec& run, const ParsedOptions& options, Console& console) {
  const Scenario& scenario = work.scenario;
  const std::string format = options.choice("format", kFormats);
  const std::vector<Assertion> assertions = parse_assertions(options.all("assert"));
  const bool reports = options.has("report"), optimises = options.has("optimise");
  if (reports) (void)chart_library();
  CampaignResult result = planned_run(work, run, written);
  const Campaign& campaign = result.plan.campaign;
  if (optimises) check_optimisable(options, result.plan, scenario.file);
  const StepIntervals intervals(presets);
  SampleOptions sampling = sampling_options(options, run);
  const HashDraws draws = hash_draws_of(options, scenario.file, scenario.fabric, scenario.nodes,
                                        nic_ports(scenario.node));
  const bool traced = reports || options.has("power-trace");
  const double all = draws.count * static_cast<double>(sampling.trajectories);
  check_work(campaign, run, {.trajectories = all, .timeline = traced}, scenario.file);

  const MostWork most = most_work(campaign, run, all);
  announce_work({.place = scenario.file + "#" + most.pointer,
                 .what = most.what,
                 .seconds = all * trajectory_estimate(campaign).base_units() /
                            std::min<double>(sampling.jobs, all)},
                console.err);
  const InterruptGuard guard;
  if (!draw(run, sampling, traced, intervals, result, console)) return Exit::interrupted;
  result.hash = hash_of(result, run, draws, sampling, console);
  sampling.progress = [] { return !InterruptGuard::interrupted(); };
  if (optimises || (reports && is_optimisable(result.plan))) {
    result.optimum = find_optimum(result.plan, sampling, console);
  }
  result.interrupted = InterruptGuard::interrupted();
  // Its points would not have met the same failures.
  if (result.interrupted) result.optimum.reset();

  nlohmann::ordered_json json = campaign_json(result);
  std::vector<std::string> misses = all_missed(assertions, json);
  const auto claim = judge_claim(scenario.expect, json, misses);
  std::optional<Behind> behind;
  // Without a trajectory there are no figures.
  if (reports && result.summary.trajectories > 0) {
    behind.emplace(scenario.file, ScenarioAnswer(AnswerKind::run, json), presets);
  }
  write_files(result, options, behind ? &*behind : nullptr, claim.get());
  warn_of_old_names(assertions, json, console);
  const TextStyle style = output_style(options, console);
  const auto table = [&] { return campaign_table(result, style) + claim_text(claim.get(), style); };
  write_output(format == "json"  ? Answer(JsonText(json))
               : format == "csv" ? Answer(campaign_csv(result))
                                 : Answer::terminal(table()),
               options, console);
  const Exit missed = report_misses(misses, console);
  return result.interrupted ? Exit::interrupted : missed;
}

}  // namespace lockstep
