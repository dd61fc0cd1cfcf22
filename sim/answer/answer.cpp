#include "sim/answer/answer.hpp"

#include <array>
#include <utility>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/json_cursor.hpp"
#include "models/base/text_file.hpp"
#include "sim/answer/answer_fields.hpp"
#include "sim/answer/assertion.hpp"
#include "sim/congestion/shared_run.hpp"
#include "sim/run/campaign_work.hpp"
#include "sim/scenario/read_residuals.hpp"
#include "sim/scenario/read_scenario.hpp"
#include "sim/scenario/rl_spec.hpp"
#include "sim/scenario/run_spec.hpp"
#include "sim/scenario/shared_scenario.hpp"
#include "sim/step/pool_memory.hpp"
#include "sim/step/step.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

/// Holds a claim of the scenario against the answer.
void judge(const Scenario& scenario, Json& answer) {
  if (!scenario.expect || scenario.expect->claim.empty()) return;
  std::vector<std::string> misses;
  add_claim({scenario.expect->claim, scenario.expect->source, answer}, answer, misses);
}

/// The draw that an answer is of, where hashes decide anything.
std::optional<HashAnswer> draw_of(const FabricSpec& fabric, int nodes, const NodeSpec& node) {
  if (!is_hashed(fabric, nodes, nic_ports(node))) return std::nullopt;
  return HashAnswer{.draw = fabric.hash_draw, .draws = 1};
}

Json of_step(RunResult& result, const PresetStore& presets) {
  const Scenario& scenario = result.scenario;
  const bool powered = scenario.power.has_value();
  result.report = simulate_step(scenario, {.record_timeline = powered, .keep_actors = powered});
  if (switches_can_limit(scenario)) result.full_fabric = on_full_fabric(scenario);
  result.hash = draw_of(scenario.fabric, scenario.nodes, scenario.node);
  if (scenario.pools.empty()) {
    result.interval = interval_of(scenario, presets);
    widen(*result.interval, result.report.band, result.report.step_s);
  }
  if (powered) result.power = step_power(scenario, result.report);
  return result_json(result);
}

Json of_run(const RunResult& job, const RunSpec& run, const PresetStore& presets,
            const Question& question) {
  const Scenario& scenario = job.scenario;
  CampaignResult result{.scenario = scenario, .plan = plan_campaign(scenario, run), .summary = {}};
  SampleOptions sampling;
  sampling.trajectories =
      static_cast<std::uint32_t>(question.trajectories.value_or(run.trajectories));
  sampling.within = run.within;
  sampling.jobs = question.jobs;
  sampling.progress = [] { return true; };
  check_work(result.plan.campaign, run,
             {.trajectories = static_cast<double>(sampling.trajectories)}, scenario.file);
  result.summary = summarise(result.plan.campaign, sample(result.plan.campaign, sampling));
  add_step(result, run);
  result.written = job.written;
  result.hash = draw_of(scenario.fabric, scenario.nodes, scenario.node);
  if (scenario.pools.empty()) {
    result.interval = interval_of(scenario, presets);
    widen(*result.interval, result.step.band, result.step.step_s);
  }
  return campaign_json(result);
}

ScenarioAnswer answer_of(const std::string& file, const std::string& text, const JsonCursor& root,
                         const PresetStore& presets, const Question& question) {
  const WrittenScenario written = std::make_shared<const Json>(root.json());
  if (is_shared_scenario(root)) {
    const SharedScenario scenario = read_shared_scenario(root, presets, question.profiles);
    if (!question.allow_oom) require_memory(scenario);
    const Cluster& cluster = scenario.cluster;
    const std::optional<HashAnswer> draw = draw_of(cluster.fabric, cluster.nodes, cluster.node);
    return {AnswerKind::jobs, shared_json(scenario, simulate_shared(scenario), draw, written)};
  }
  if (has_rl(root)) {
    const RlScenario scenario =
        read_rl_scenario(file, text, presets, {.set = question.set, .profiles = question.profiles});
    if (!question.allow_oom) require_memory(scenario);
    const Scenario& training = scenario.training;
    const std::optional<HashAnswer> draw = draw_of(training.fabric, training.nodes, training.node);
    return {AnswerKind::rl, rl_json(scenario, simulate_rl_step(scenario), draw, written)};
  }
  const JobFile job = read_job_file(root, presets);
  RunResult result{
      .scenario = complete_measured(job.draft, presets, {.profiles = question.profiles}),
      .report = {},
      .memory = {}};
  result.written = written;
  result.scenario.folding = question.folding;
  result.memory = check_memory(result.scenario);
  const bool fits = !result.scenario.expect || result.scenario.expect->fits;
  if (!question.allow_oom && fits) require_memory(result);
  Json json = job.run ? of_run(result, *job.run, presets, question) : of_step(result, presets);
  judge(result.scenario, json);
  return {job.run ? AnswerKind::run : AnswerKind::step, std::move(json)};
}

/// The member that a dotted path ends at; elements of lists and of objects with keys of their own
/// are skipped.
const FieldInfo* field_at(std::span<const FieldInfo> fields, std::string_view path) {
  const std::size_t dot = path.find('.');
  for (const FieldInfo& field : fields) {
    if (field.name != path.substr(0, dot)) continue;
    if (dot == std::string_view::npos) return &field;
    std::string_view rest = path.substr(dot + 1);
    if (field.kind == FieldKind::objects) {
      const std::size_t next = rest.find('.');
      if (next == std::string_view::npos) return nullptr;
      rest = rest.substr(next + 1);
    }
    return field_at(field.members, rest);
  }
  return nullptr;
}

}  // namespace

std::string_view name_of(AnswerKind kind) {
  constexpr std::array<std::string_view, 4> kNames{"step", "run", "jobs", "rl"};
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
  if (!assertion) fail(std::string(assertion_form()), {});
  const std::optional<double> value = number(assertion->field);
  if (!value) {
    const std::vector<std::string> names = number_fields(*json_);
    fail("a number of the answer", nearest_name(assertion->field, names));
  }
  return !missed_by(*assertion, *value);
}

ScenarioAnswer answer_scenario(const std::string& file, const PresetStore& presets,
                               const Question& question) {
  return answer_text(file, read_text_file(file), presets, question);
}

ScenarioAnswer answer_text(const std::string& file, const std::string& text,
                           const PresetStore& presets, const Question& question) {
  const JsonCursor root = JsonCursor::parse(file, text, JsonStyle::plain, question.set);
  return answer_of(file, text, root, presets, question);
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
      return rl_fields().infos();
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

}  // namespace lockstep
