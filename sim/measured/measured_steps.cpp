#include "sim/measured/measured_steps.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fmt/format.h>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/json_cursor.hpp"
#include "models/base/json_text.hpp"
#include "models/base/text_file.hpp"
#include "models/base/write_json.hpp"
#include "sim/measured/row_scenario.hpp"
#include "sim/measured/rows.hpp"
#include "sim/scenario/read_scenario.hpp"
#include "sim/scenario/stack_choice.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::size_t kMostSteps = 10'000;
constexpr Interval kStepTime{0, 1e7, true};

/// The text and the name of a step's scenario.
struct ScenarioText {
  std::string file, text;
};

ScenarioText scenario_text(const JsonCursor& from, const std::string& runs) {
  if (from.is_object()) return {runs, write_json(from.json())};
  const fs::path file = fs::path(runs).parent_path() / from.string();
  if (!fs::is_regular_file(file)) {
    from.fail("a scenario, or the file of one: " + file.string() + " is none");
  }
  return {file.string(), read_text_file(file.string())};
}

/// Reads the scenario of a step. What is wrong in one that stands in the list is told by its place
/// there.
Scenario scenario_of(const JsonCursor& from, const ScenarioText& text, const PresetStore& presets) {
  if (!from.is_object()) return read_scenario(text.file, text.text, presets);
  try {
    return read_scenario(text.file, text.text, presets);
  } catch (const InputError& error) {
    if (error.problem().file != text.file) throw;  // of a file that the scenario names
    throw retold(error, [&](InputProblem& problem) { problem.pointer.insert(0, from.pointer()); });
  }
}

/// Two steps are of one job where their scenarios say the same.
std::string job_key(const std::string& text) {
  Json scenario = Json::parse(text);
  for (const char* key : {"expect", "about", "$schema"}) scenario.erase(key);
  return write_json(scenario);
}

/// What a scenario says of its software, as a preset has it.
Json stack_of(const std::string& text) {
  const Json scenario = Json::parse(text);
  if (!scenario.contains("stack")) return {{"preset", std::string(kDefaultStack)}};
  const Json& stack = scenario["stack"];
  if (stack.is_string()) return {{"preset", stack}};
  Json out = stack;
  if (!out.contains("preset") && !out.contains("framework")) {
    out["preset"] = std::string(kDefaultStack);
  }
  return out;
}

[[noreturn]] void fail_software(const std::string& file, const std::string& place,
                                const std::string& found, const std::string& expected) {
  throw InputError(
      {.file = file,
       .pointer = place,
       .found = "the stack " + found,
       .allowed = "the stack of the steps before it, " + expected + ": one file teaches one",
       .nearest = {}});
}

/// Sets the stack that all steps have in common.
void take_stack(const Json& stack, const std::string& file, const std::string& place,
                MeasuredSteps& out) {
  if (out.stack.empty()) {
    out.stack = write_json(stack);
  } else if (Json::parse(out.stack) != stack) {
    fail_software(file, place, write_json(stack), out.stack);
  }
}

void read_step(const JsonCursor& at, const std::string& file, const PresetStore& presets,
               MeasuredSteps& out) {
  // A key that is none is named before what is missing for it.
  const std::optional<JsonCursor> time = at.find("step");
  (void)at.find("scenario");
  at.finish();
  const JsonCursor from = at.at("scenario");
  const ScenarioText text = scenario_text(from, file);
  MeasuredStep step{.name = from.is_object() ? at.pointer() : from.string(),
                    .job = {},
                    .scenario = scenario_of(from, text, presets),
                    .measured_s = 0};
  step.job = job_key(text.text);
  const auto& expect = step.scenario.expect;
  if (!time && (!expect || !expect->step_time)) {
    at.fail(R"("step", the measured time of a step, or a scenario with expect.step_time)");
  }
  step.measured_s = time ? time->seconds(kStepTime).base_units() : expect->step_time->base_units();
  take_stack(stack_of(text.text), file, at.pointer(), out);
  out.steps.push_back(std::move(step));
}

void read_rows(const std::string& file, std::string_view text, const PresetStore& presets,
               MeasuredSteps& out) {
  for (const ReferenceRow& row : parse_rows(file, text)) {
    if (!row.obstacle.empty() || !row.measured_step_s) {
      out.left_out.push_back(
          fmt::format("{}: {}", row.id, row.obstacle.empty() ? "no step time" : row.obstacle));
      continue;
    }
    MeasuredStep step{.name = row.id,
                      .job = row.id,
                      .scenario = row_scenario(row, presets),
                      .measured_s = *row.measured_step_s};
    const StackSpec& stack = step.scenario.stack;
    Json said{{"preset", stack.name}};
    if (!stack.release.empty()) said["release"] = stack.release;
    take_stack(said, file, "/" + row.id, out);
    out.steps.push_back(std::move(step));
  }
}

/// Keys of which every row of measurements has one: its name, its machine, its job.
constexpr std::array<const char*, 6> kRowKeys{"row", "id", "gpu", "model", "parallel", "tp"};

/// What has a scenario, unless it is a row around one, and what nothing shows to be a row: the keys
/// of that one may be misspelt.
bool is_list_of_steps(const JsonCursor& root) {
  const Json& json = root.json();
  if (!json.is_array() || json.empty() || !json.front().is_object()) return false;
  const Json& first = json.front();
  if (first.contains("scenario")) return !first.contains("row");
  return std::ranges::none_of(kRowKeys, [&](const char* key) { return first.contains(key); });
}

constexpr const char* kStepsOrRows =
    R"(a list of steps ({"scenario", "step"}) or of rows of measurements, or {"rows": [...]})";

/// Refuses a list that holds neither steps nor rows.
void require_objects(const JsonCursor& root) {
  const Json& json = root.json();
  if (!json.is_array() && !json.is_object()) root.fail(kStepsOrRows);
  if (!json.is_array() || json.empty()) return;
  if (std::ranges::any_of(json, [](const Json& at) { return at.is_object(); })) return;
  root.elements(json.size())
      .front()
      .fail(R"(a step ({"scenario", "step"}), or a row of measurements)");
}

std::string others_text(std::size_t count) {
  return count == 0 ? std::string() : fmt::format(" (and {} more)", count);
}

}  // namespace

MeasuredSteps read_measured_steps(const std::string& file, std::string_view text,
                                  const PresetStore& presets) {
  MeasuredSteps out;
  require_json_text(file, text, kStepsOrRows);
  const JsonCursor root = JsonCursor::parse(file, text);
  require_objects(root);
  if (is_list_of_steps(root)) {
    for (const JsonCursor& at : root.elements(kMostSteps)) read_step(at, file, presets, out);
  } else {
    read_rows(file, text, presets, out);
  }
  if (out.steps.empty()) {
    throw InputError({.file = file,
                      .pointer = {},
                      .found = "no step that can be predicted: " + out.left_out.front() +
                               others_text(out.left_out.size() - 1),
                      .allowed = "at least one",
                      .nearest = {}});
  }
  out.stack_name = out.steps.front().scenario.stack.name;
  return out;
}

}  // namespace lockstep
