#include "sim/search/sweep/simulate_point.hpp"

#include <algorithm>
#include <exception>
#include <filesystem>
#include <new>

#include "models/base/missing_keys.hpp"
#include "models/base/text_file.hpp"
#include "models/base/write_json.hpp"
#include "sim/answer/answer.hpp"
#include "sim/scenario/run_spec.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

/// As answers have it: they are the same wherever the scenario lies.
std::string file_name(const Sweep& sweep) {
  return std::filesystem::path(sweep.scenario_file).filename().string();
}

/// Whether an axis gives the object: other points may have the keys that it lacks.
bool is_of_axis(const Sweep& sweep, const std::string& object) {
  return std::ranges::any_of(sweep.axes, [&](const SweepAxis& axis) {
    return std::ranges::any_of(axis.variables, [&](const SweepVariable& variable) {
      return !variable.at.empty() && (object + "/").starts_with(variable.at + "/");
    });
  });
}

/// Why a point has no answer, in one line.
std::string point_reason(const std::exception& error) {
  const auto* const mistake = dynamic_cast<const InputError*>(&error);
  return mistake == nullptr ? error.what() : mistake->first_line();
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
                                          const std::function<bool()>& go_on,
                                          const MemberNames* only) {
  const Question question{.folding = sweep.folding,
                          .allow_oom = sweep.allow_oom,
                          .full_fabric = false,
                          .shown_file = file_name(sweep),
                          .only = only,
                          .go_on = go_on};
  try {
    const std::optional<ScenarioAnswer> answer =
        answer_text(sweep.scenario_file, write_json(scenario), presets, intervals, question);
    if (!answer) return std::nullopt;
    return PointAnswer{.error = {}, .json = answer->json()};
  } catch (const std::bad_alloc&) {
    throw;  // nothing about the point: whoever goes on with the sweep tries it again
  } catch (const std::exception& error) {
    std::string words = point_reason(error);
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
