#include "sim/measured/validate_queue.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <fmt/format.h>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/number_text.hpp"
#include "models/base/text_file.hpp"
#include "models/base/write_json.hpp"
#include "sim/answer/assertion.hpp"
#include "sim/answer/filling_answer.hpp"
#include "sim/answer/queue_answer.hpp"
#include "sim/cluster/fill_cluster.hpp"
#include "sim/cluster/job_speeds.hpp"
#include "sim/cluster/recorded_schedule.hpp"
#include "sim/measured/queue_outcomes.hpp"
#include "sim/scenario/read_filling.hpp"
#include "sim/scenario/recorded_path.hpp"
#include "sim/scenario/scenario_file.hpp"
#include "sim/scenario/shipped_scenarios.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

/// The file of an outcome's scenario: beside its document, else one that ships.
std::string scenario_file_of(const QueueOutcome& outcome, const PresetStore& presets) {
  const fs::path beside = fs::path(outcome.at.file()).parent_path() / outcome.scenario;
  std::error_code ignored;
  if (fs::is_regular_file(beside, ignored)) return beside.string();
  std::string nearest;
  try {
    const std::string shipped = scenario_path(outcome.scenario, presets);
    if (shipped != outcome.scenario) return shipped;
  } catch (const InputError& error) {
    nearest = error.problem().nearest;
  }
  outcome.at.at("scenario")
      .fail(
          "the path of a scenario from this file's folder, a name of lockstep list scenarios, or "
          "an "
          "object",
          nearest);
}

/// As a mistake of the document that has the scenario in it, or changes it.
InputError told_of_document(const InputError& error, const QueueOutcome& outcome) {
  InputError told = error;
  for (const std::string& set : outcome.set) {
    told = told_of(told, "--set " + set,
                   fmt::format("{}#{}/set, {}", outcome.at.file(), outcome.at.pointer(), set));
  }
  return retold(told, [&](InputProblem& problem) {
    const bool of_scenario = outcome.scenario.empty() && problem.file == outcome.at.file() &&
                             !problem.pointer.starts_with(outcome.at.pointer());
    if (of_scenario) problem.pointer.insert(0, outcome.at.pointer() + "/scenario");
  });
}

/// Of what a cluster is filled with, not a queue.
bool is_filling(const ParsedScenario& parsed) {
  return parsed.root.is_object() && parsed.root.json().contains("filling");
}

ParsedScenario parsed_queue(const QueueOutcome& outcome, const PresetStore& presets) {
  const bool is_inline = outcome.scenario.empty();
  const std::string file = is_inline ? outcome.at.file() : scenario_file_of(outcome, presets);
  std::string text =
      is_inline ? write_json(outcome.at.at("scenario").json()) : read_text_file(file);
  ParsedScenario parsed = parse_scenario(file, std::move(text), outcome.set);
  if (is_filling(parsed)) return parsed;
  if (parsed.kind != ScenarioKind::queue) {
    (void)parsed.root.at("queue");  // names what is missing
    require_kind(parsed.root, {ScenarioKind::queue}, "a scenario with \"queue\"");
  }
  return parsed;
}

/// Whether all traces are there: what is drawn in place of one is no prediction of it.
bool has_traces(const ParsedScenario& parsed) {
  const Json::json_pointer jobs("/queue/jobs"), file("/trace/file");
  const Json& scenario = parsed.root.json();
  if (!scenario.contains(jobs) || !scenario.at(jobs).is_array()) return true;
  return std::ranges::all_of(scenario.at(jobs), [&](const Json& source) {
    if (!source.is_object() || !source.contains(file) || !source.at(file).is_string()) return true;
    const auto& name = source.at(file).get_ref<const std::string&>();
    return recorded_path(parsed.root.file(), name).has_value();
  });
}

/// Beside the document, beside the scenario, or where LOCKSTEP_DATA says.
std::optional<std::string> schedule_path(const QueueOutcome& outcome, const std::string& scenario) {
  if (!outcome.schedule) return std::nullopt;
  const auto beside_document = recorded_path(outcome.at.file(), outcome.schedule->file);
  return beside_document ? beside_document : recorded_path(scenario, outcome.schedule->file);
}

std::string promise_text(const std::optional<double>& within) {
  return within ? number_text(100 * *within) + " %" : std::string("-");
}

/// Collects the points of a table.
class QueuePoints {
 public:
  explicit QueuePoints(PointTable& table) : table_(&table) {}

  void add(const QueueOutcome& of, const std::string& figure, double value, double predicted,
           const std::optional<double>& within) {
    const double error = predicted / value - 1;
    const bool kept = !within || std::abs(error) <= *within;
    const std::string basis(kOutcomeBasisNames[static_cast<std::size_t>(of.basis)]);
    const char* const verdict = !within ? "reported" : kept ? "kept" : "missed";
    table_->points.push_back({.identity = {{"queue", of.id},
                                           {"figure", figure},
                                           {"within", promise_text(within)},
                                           {"promise", verdict}},
                              .measured = value,
                              .predicted = predicted,
                              .error = error,
                              .details = {{"basis", basis}, {"source", of.source}}});
    if (kept) return;
    table_->missed.push_back(fmt::format(
        "{}, {}: predicted {}, {} {}: {:+.4f} %; promised: within {}", of.id, figure,
        number_text(predicted), basis, number_text(value), 100 * error, promise_text(within)));
  }

 private:
  PointTable* table_;
};

void add_answer_points(const QueueOutcome& of, const Json& answer, QueuePoints& points) {
  for (const OutcomeFigure& figure : of.figures) {
    const std::optional<double> predicted = number_at(answer, figure.name);
    if (!predicted && is_null_at(answer, figure.name)) {
      figure.at.at("figure").fail("a number that the answer has a value of, which this one is not");
    }
    if (!predicted) {
      figure.at.at("figure").fail("a number of the answer (lockstep list fields)",
                                  nearest_name(figure.name, number_fields(answer)));
    }
    points.add(of, figure.name, figure.value, *predicted, figure.within);
  }
}

void add_schedule_points(const QueueOutcome& of, const ScheduleMatch& match, QueuePoints& points) {
  const auto number = [](std::size_t count) { return static_cast<double>(count); };
  const auto pair_of = [&](const AlikeCount& count) {
    return std::pair(number(count.of), number(count.alike));
  };
  // In the order of kScheduleFigures.
  const std::array<std::pair<double, double>, kScheduleFigures.size()> figures{
      std::pair(number(match.runs), number(match.simulated_runs)),
      pair_of(match.starts),
      pair_of(match.ends),
      pair_of(match.nodes),
      pair_of(match.order),
      std::pair(match.wait_mean_s, match.simulated_wait_mean_s)};
  for (std::size_t f = 0; f < figures.size(); ++f) {
    const auto [recorded, simulated] = figures[f];
    // Nodes may not be recorded; a wait within the gap is the pace of the scheduler's cycles.
    const bool is_wait = f + 1 == figures.size();
    if (recorded <= (is_wait ? of.schedule->gap.base_units() : 0)) continue;
    points.add(of, fmt::format("schedule.{}", kScheduleFigures[f]), recorded, simulated,
               of.schedule->within[f]);
  }
}

bool add_filling(const QueueOutcome& of, const ParsedScenario& parsed, QueuePoints& points) {
  if (of.schedule) of.at.at("schedule").fail("no such key: a cluster that is filled has none");
  if (!has_filling_traces(parsed.root)) return false;
  const FillingSpec spec = read_filling(parsed.root);
  add_answer_points(of, filling_json(spec, fill_cluster(spec)), points);
  return true;
}

/// Whether the queue could be simulated with all that it names.
bool add_outcome(const QueueOutcome& of, const PresetStore& presets, QueuePoints& points) {
  const ParsedScenario parsed = parsed_queue(of, presets);
  if (is_filling(parsed)) return add_filling(of, parsed, points);
  const std::optional<std::string> schedule = schedule_path(of, parsed.root.file());
  if (!has_traces(parsed) || (of.schedule && !schedule)) return false;
  QueueSpec spec = *read_scenario_file(parsed, presets).queue;
  time_trainings(spec);
  QueueResult result = simulate_queue(spec, {.keep_spans = of.schedule.has_value()});
  settle_campaigns(spec, result);
  const WrittenScenario written = std::make_shared<const Json>(parsed.root.json());
  add_answer_points(of, queue_json({spec, result, summary_of(spec, result), written}), points);
  if (!of.schedule) return true;
  const JobSchedule recorded = read_recorded_schedule(*schedule, read_text_file(*schedule));
  add_schedule_points(
      of, match_schedule(spec, recorded, schedule_of(spec, result), of.schedule->gap), points);
  return true;
}

}  // namespace

PointTable validate_queue(const std::string& path, const PresetStore& presets) {
  PointTable out{.what = "queues", .unit = "", .points = {}, .summary = {}, .skipped = {}};
  out.fine = true;
  QueuePoints points(out);
  std::size_t skipped = 0;
  for (const QueueOutcome& outcome : read_queue_outcomes(path)) {
    try {
      skipped += add_outcome(outcome, presets, points) ? 0 : 1;
    } catch (const InputError& error) {
      throw told_of_document(error, outcome);
    }
  }
  if (skipped > 0) {
    out.skipped.push_back(
        fmt::format("{}: a trace or schedule is neither beside its scenario nor in a folder that "
                    "LOCKSTEP_DATA names",
                    counted(static_cast<double>(skipped), "queue")));
  }
  out.summary = summarise_by(out.points, "figure");
  return out;
}

}  // namespace lockstep
