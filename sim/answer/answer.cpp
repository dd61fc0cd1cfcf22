#include "sim/answer/answer.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <utility>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/json_cursor.hpp"
#include "models/base/text_file.hpp"
#include "sim/answer/answer_fields.hpp"
#include "sim/answer/assertion.hpp"
#include "sim/answer/formulas.hpp"
#include "sim/answer/queue_answer.hpp"
#include "sim/cluster/job_speeds.hpp"
#include "sim/congestion/shared_run.hpp"
#include "sim/run/campaign_work.hpp"
#include "sim/scenario/scenario_file.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

/// Holds a claim of the scenario against the answer.
template <class Expect>
void judge(const std::optional<Expect>& expect, Json& answer) {
  std::vector<std::string> misses;
  judge_claim(expect, answer, misses);
}

/// Nothing where `question.go_on` said no on the way.
std::optional<Json> of_run(const RunWork& work, const RunSpec& run, const WrittenScenario& written,
                           const StepIntervals& intervals, const Question& question) {
  CampaignResult result = planned_run(work, run, written);
  SampleOptions sampling;
  sampling.trajectories =
      static_cast<std::uint32_t>(question.trajectories.value_or(run.trajectories));
  sampling.within = run.within;
  sampling.jobs = question.jobs;
  sampling.progress = question.go_on ? question.go_on : [] { return true; };
  sampling.under_way = [&](double done) {
    if (question.reached) question.reached(std::min(1.0, done / sampling.trajectories));
    return sampling.progress();
  };
  check_work(result.plan.campaign, run,
             {.trajectories = static_cast<double>(sampling.trajectories)}, work.scenario.file);
  const bool done = answer_run(run, sampling, false, intervals, result);
  if (!done || !sampling.progress()) return std::nullopt;
  return campaign_json(result, question.only);
}

std::optional<ScenarioAnswer> of_job(ScenarioFile file, const WrittenScenario& written,
                                     const StepIntervals& intervals, const Question& question) {
  RunResult result = step_to_answer(*std::move(file.job), written);
  if (!question.shown_file.empty()) result.scenario.file = question.shown_file;
  const bool fits = !result.scenario.expect || result.scenario.expect->fits;
  if (!question.allow_oom && fits) require_memory(result);
  std::optional<Json> json;
  if (file.run) {
    json = of_run(result.scenario, *file.run, result.written, intervals, question);
  } else {
    answer_step({.full_fabric = question.full_fabric}, intervals, result);
    json = result_json(result, question.only);
  }
  if (!json) return std::nullopt;
  if (question.only == nullptr) judge(result.scenario.expect, *json);
  return ScenarioAnswer(file.run ? AnswerKind::run : AnswerKind::step, *std::move(json));
}

ScenarioAnswer of_jobs(const SharedScenario& scenario, const WrittenScenario& written,
                       const Question& question) {
  if (!question.allow_oom) require_memory(scenario);
  const Cluster& cluster = scenario.cluster;
  const std::optional<HashAnswer> draw = draw_of(cluster.fabric, cluster.nodes, cluster.node);
  const SharedResult result = simulate_shared(scenario);
  return {AnswerKind::jobs,
          shared_json(scenario, result, power_of(scenario, result), draw, written)};
}

/// Nothing where `question.go_on` stopped it.
std::optional<ScenarioAnswer> of_rl(const ScenarioFile& file, const WrittenScenario& written,
                                    const StepIntervals& intervals, const Question& question) {
  const RlScenario& scenario = *file.rl;
  if (!question.allow_oom) require_memory(scenario);
  const Scenario& training = scenario.training;
  if (file.run) {
    std::optional<Json> json = of_run(scenario, *file.run, written, intervals, question);
    if (!json) return std::nullopt;
    judge(training.expect, *json);
    return ScenarioAnswer(AnswerKind::run, *std::move(json));
  }
  const std::optional<HashAnswer> draw = draw_of(training.fabric, training.nodes, training.node);
  Json json = rl_json(scenario, answer_rl(scenario), draw, written);
  judge(training.expect, json);
  return ScenarioAnswer(AnswerKind::rl, std::move(json));
}

/// What is told and asked on the way through a queue or a service.
bool goes_on(const Question& question, std::size_t ended, std::size_t all) {
  if (question.reached && all > 0) {
    question.reached(static_cast<double>(ended) / static_cast<double>(all));
  }
  return !question.go_on || question.go_on();
}

/// Nothing where `question.go_on` said no on the way.
std::optional<ScenarioAnswer> of_queue(QueueSpec& spec, const WrittenScenario& written,
                                       const Question& question) {
  time_trainings(spec, question.allow_oom);
  QueueOptions options;
  options.without_bursts = true;
  options.go_on = [&](std::size_t ended, std::size_t all) { return goes_on(question, ended, all); };
  QueueResult result = simulate_queue(spec, options);
  if (result.stopped) return std::nullopt;
  settle_campaigns(spec, result);
  Json json = queue_json({spec, result, summary_of(spec, result), written});
  judge(spec.expect, json);
  return ScenarioAnswer(AnswerKind::queue, std::move(json));
}

/// The same.
std::optional<ScenarioAnswer> of_serving(ServingSpec& spec, const WrittenScenario& written,
                                         const Question& question) {
  const std::size_t all = spec.requests.size();
  const auto go_on = [&](std::size_t ended) { return goes_on(question, ended, all); };
  const ServingReport report = simulate_serving(spec, go_on);
  if (report.stopped) return std::nullopt;
  Json json = serving_json({spec, report, written});
  judge(spec.expect, json);
  return ScenarioAnswer(AnswerKind::serving, std::move(json));
}

/// ": it is the mean over ended jobs of end less submission, and ended is 0"; what a number without
/// a value would be, and which of what goes into it is nothing.
std::string why_null(const Json& answer, std::string_view field) {
  const std::optional<AnswerKind> kind = kind_of(answer);
  const Formula* const formula = kind ? formula_of(*kind, field) : nullptr;
  if (formula == nullptr) return ": there is nothing to take it from";
  std::string out = fmt::format(": it is \"{}\"", formula->text);
  for (const FormulaInput& input : inputs_of(*formula)) {
    const std::optional<double> number = number_at(answer, input.path);
    if (number && *number == 0) out += fmt::format(", and {} is 0", input.path);
  }
  return out;
}

}  // namespace

std::string_view name_of(AnswerKind kind) {
  constexpr std::array<std::string_view, 6> kNames{"step", "run", "jobs", "rl", "queue", "serving"};
  return kNames[static_cast<std::size_t>(kind)];
}

ScenarioAnswer::ScenarioAnswer(AnswerKind kind, Json json)
    : kind_(kind), json_(std::make_shared<const Json>(std::move(json))) {}

std::optional<double> ScenarioAnswer::number(std::string_view path) const {
  return number_at(*json_, path);
}

bool ScenarioAnswer::keeps(const std::string& bound) const {
  const auto fail = [&](std::string allowed, std::string nearest) {
    throw InputError({.file = "bound",
                      .pointer = {},
                      .found = in_quotes(bound),
                      .allowed = std::move(allowed),
                      .nearest = std::move(nearest)});
  };
  const std::optional<Assertion> assertion = try_assertion(bound);
  if (!assertion) fail(assertion_form(bound), {});
  const std::optional<AssertedNumber> number = held_against(*assertion, *json_);
  if (!number) {
    const std::vector<std::string> names = number_fields(*json_);
    fail("a number of the answer", nearest_name(assertion->field, names));
  }
  return !number->miss;
}

ScenarioAnswer answer_scenario(const std::string& file, const PresetStore& presets,
                               const Question& question) {
  return answer_text(file, read_text_file(file), presets, question);
}

ScenarioAnswer answer_text(const std::string& file, const std::string& text,
                           const PresetStore& presets, const Question& question) {
  return *answer_text(file, text, presets, StepIntervals(presets), question);
}

std::optional<ScenarioAnswer> answer_text(const std::string& file, const std::string& text,
                                          const PresetStore& presets,
                                          const StepIntervals& intervals,
                                          const Question& question) {
  const ParsedScenario parsed = parse_scenario(file, text, question.set);
  require_kind(parsed.root,
               {ScenarioKind::run, ScenarioKind::jobs, ScenarioKind::rl, ScenarioKind::queue,
                ScenarioKind::serving},
               "no such key: the answer to a job, to several, or to a step of reinforcement "
               "learning is asked "
               "for");
  ScenarioFile scenario = read_scenario_file(
      parsed, presets, {.profiles = question.profiles, .folding = question.folding});
  const WrittenScenario written = std::make_shared<const Json>(parsed.root.json());
  if (scenario.jobs) return of_jobs(*scenario.jobs, written, question);
  if (scenario.queue) return of_queue(*scenario.queue, written, question);
  if (scenario.serving) return of_serving(*scenario.serving, written, question);
  if (scenario.rl) return of_rl(scenario, written, intervals, question);
  return of_job(std::move(scenario), written, intervals, question);
}

std::vector<FieldInfo> answer_fields(AnswerKind kind) {
  std::vector<FieldInfo> out;
  switch (kind) {
    case AnswerKind::step:
      out = step_fields().infos();
      break;
    case AnswerKind::run:
      out = campaign_fields().infos();
      break;
    case AnswerKind::jobs:
      return shared_fields().infos();
    case AnswerKind::rl:
      out = rl_fields().infos();
      break;
    case AnswerKind::queue:
      out = queue_fields().infos();
      break;
    case AnswerKind::serving:
      out = serving_fields().infos();
      break;
  }
  out.push_back({.name = "claim",
                 .sentence = "A claim of the scenario, held against this answer.",
                 .kind = FieldKind::object,
                 .always = false,
                 .members = claim_fields().infos()});
  return out;
}

std::optional<AnswerKind> kind_of(const Json& answer) {
  const auto kind = answer.is_object() ? answer.find("kind") : answer.end();
  if (!answer.is_object() || kind == answer.end() || !kind->is_string()) return std::nullopt;
  for (const AnswerKind each : kAnswerKinds) {
    if (name_of(each) == kind->get_ref<const std::string&>()) return each;
  }
  return std::nullopt;
}

std::string successor_of(AnswerKind kind, std::string_view path) {
  const std::vector<FieldInfo> fields = answer_fields(kind);
  // What was simulated was "scenario" before that held what was written.
  constexpr std::string_view kBefore = "scenario.";
  if (kind == AnswerKind::step && path.starts_with(kBefore)) {
    const std::string now = "job." + std::string(path.substr(kBefore.size()));
    return field_at(fields, now) != nullptr ? now : std::string();
  }
  const FieldInfo* const field = field_at(fields, path);
  if (field == nullptr || field->successor.empty()) return {};
  const std::size_t dot = path.rfind('.');
  const std::string before(dot == std::string_view::npos ? "" : path.substr(0, dot + 1));
  return before + field->successor;
}

std::optional<double> number_by_any_name(const Json& answer, std::string_view path) {
  if (const std::optional<double> number = number_at(answer, path)) return number;
  const std::optional<AnswerKind> kind = kind_of(answer);
  const std::string successor = kind ? successor_of(*kind, path) : std::string();
  return successor.empty() ? std::nullopt : number_at(answer, successor);
}

std::optional<AssertedNumber> held_against(const Assertion& assertion, const Json& answer) {
  if (const auto number = number_by_any_name(answer, assertion.field)) {
    return AssertedNumber{number, missed_by(assertion, *number)};
  }
  if (!is_null_at(answer, assertion.field)) return std::nullopt;
  std::string why = why_null(answer, assertion.field);
  return AssertedNumber{std::nullopt,
                        fmt::format("{}: {} has no value{}", assertion.text, assertion.field, why),
                        std::move(why)};
}

}  // namespace lockstep
