#include "tools/lockstep/sweep/simulate_point.hpp"

#include <algorithm>
#include <exception>
#include <filesystem>

#include "models/base/missing_keys.hpp"
#include "models/base/text_file.hpp"
#include "models/base/write_json.hpp"
#include "sim/run/campaign_work.hpp"
#include "sim/run/plan_campaign.hpp"
#include "sim/run/summary.hpp"
#include "sim/scenario/read_scenario.hpp"
#include "sim/scenario/run_spec.hpp"
#include "sim/step/pool_memory.hpp"
#include "sim/step/step.hpp"
#include "tools/lockstep/run/run_result.hpp"
#include "tools/lockstep/run_campaign.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

/// As answers have it: they are the same wherever the scenario lies.
std::string file_name(const Sweep& sweep) {
  return std::filesystem::path(sweep.scenario_file).filename().string();
}

Json step_answer(RunResult& result, const StepIntervals& intervals) {
  const bool powered = result.scenario.power.has_value();
  result.report =
      simulate_step(result.scenario, {.record_timeline = powered, .keep_actors = powered});
  if (powered) result.power = step_power(result.scenario, result.report);
  result.interval = intervals.of(result.scenario);
  return result_json(result);
}

std::optional<Json> run_answer(const RunResult& job, const RunSpec& run,
                               const StepIntervals& intervals, const std::function<bool()>& go_on) {
  const Scenario& scenario = job.scenario;
  CampaignResult result{.scenario = scenario, .plan = plan_campaign(scenario, run), .summary = {}};
  result.written = job.written;
  SampleOptions sampling;
  sampling.trajectories = static_cast<std::uint32_t>(run.trajectories);
  sampling.within = run.within;
  check_work(result.plan.campaign, run,
             {.trajectories = static_cast<double>(sampling.trajectories)}, scenario.file);
  sampling.progress = go_on;
  const std::vector<TrajectoryResult> results = sample(result.plan.campaign, sampling);
  if (!go_on()) return std::nullopt;
  result.summary = summarise(result.plan.campaign, results);
  add_step(result, run);
  result.interval = intervals.of(scenario);
  return campaign_json(result);
}

/// Whether an axis gives the object: other points may have the keys that it lacks.
bool is_of_axis(const Sweep& sweep, const std::string& object) {
  return std::ranges::any_of(sweep.axes, [&](const SweepAxis& axis) {
    return std::ranges::any_of(axis.variables, [&](const SweepVariable& variable) {
      return !variable.at.empty() && (object + "/").starts_with(variable.at + "/");
    });
  });
}

}  // namespace

void require_known_keys(const Sweep& sweep, Json scenario, const PresetStore& presets) {
  // The points have none, but the file may.
  const JsonCursor file =
      JsonCursor::parse(sweep.scenario_file, read_text_file(sweep.scenario_file));
  if (const auto expect = file.find("expect")) scenario["expect"] = expect->json();
  const std::string text = write_json(scenario);
  try {
    (void)read_job_file(JsonCursor::parse(sweep.scenario_file, text), presets);
  } catch (const MissingKeys& error) {
    if (!std::ranges::all_of(
            error.keys(), [&](const MissingKey& key) { return is_of_axis(sweep, key.object); })) {
      throw;
    }
  } catch (const InputError& error) {
    if (error.problem().found.starts_with("the unknown key ")) throw;
  }
}

std::optional<PointAnswer> simulate_point(const Sweep& sweep, const Json& scenario,
                                          const PresetStore& presets,
                                          const StepIntervals& intervals,
                                          const std::function<bool()>& go_on) {
  try {
    const std::string text = write_json(scenario);
    RunResult result{
        .scenario = read_scenario(sweep.scenario_file, text, presets, {.folding = sweep.folding}),
        .report = {},
        .memory = {}};
    result.scenario.file = file_name(sweep);
    result.written = std::make_shared<const Json>(scenario);
    result.memory = check_memory(result.scenario);
    if (!sweep.allow_oom) require_memory(result);
    if (!sweep.is_run) return PointAnswer{.error = {}, .json = step_answer(result, intervals)};
    const JsonCursor root = JsonCursor::parse(sweep.scenario_file, text);
    std::optional<Json> answer = run_answer(
        result, read_run_spec(root.at("run"), presets, result.scenario.site), intervals, go_on);
    if (!answer) return std::nullopt;
    return PointAnswer{.error = {}, .json = *std::move(answer)};
  } catch (const std::exception& error) {
    std::string words = error.what();
    if (words.starts_with(sweep.scenario_file)) {
      words.replace(0, sweep.scenario_file.size(), file_name(sweep));
    }
    // What `run` calls its option is a key of the sweep file.
    constexpr std::string_view kOption = "--allow-oom";
    const std::size_t option = words.find(kOption);
    if (option != std::string::npos) words.replace(option, kOption.size(), "\"allow_oom\": true");
    return PointAnswer{.error = std::move(words), .json = nullptr};
  }
}

}  // namespace lockstep
