#include "tools/explore/explorer.hpp"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <utility>

#include "models/base/input_error.hpp"
#include "models/base/json_cursor.hpp"
#include "models/base/write_json.hpp"
#include "sim/answer/step_answer.hpp"
#include "sim/measured/explanation.hpp"
#include "sim/scenario/read_scenario.hpp"
#include "sim/scenario/scenario_file.hpp"
#include "sim/search/search_base.hpp"
#include "sim/search/tune.hpp"
#include "sim/search/tuned_scenario.hpp"
#include "tools/console/interrupt.hpp"
#include "tools/console/written.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

std::string text_of(const Json& scenario) { return write_json(scenario, 2) + "\n"; }

/// Whether all GPUs of the cluster take part, so that the number of replicas follows from theirs.
bool fills_cluster(const Scenario& scenario) {
  return scenario.gpus() == scenario.nodes * scenario.node.gpus;
}

bool moves_power(const ExploreState& state) {
  return std::ranges::any_of(state,
                             [](const auto& each) { return each.first.starts_with("power"); });
}

}  // namespace

Explorer::Explorer(const std::string& file, const std::string& text,
                   const std::vector<std::string>& sets, const PresetStore& presets)
    : presets_(&presets), intervals_(presets), controls_(explore_controls(presets)) {
  const std::filesystem::path folder = std::filesystem::path(file).parent_path();
  file_ = (folder / kExploredFile).generic_string();
  const ParsedScenario parsed = parse_scenario(file, text, sets);
  require_kind(parsed.root, {},
               "no such key: what the page shows is one training step; lockstep run --vary and "
               "lockstep plan compare the rest");
  const ScenarioFile read = read_scenario_file(parsed, presets);
  scenario_ = parsed.root.json();
  // What was asked on the command line is from no file.
  const std::filesystem::path from(file);
  name_ = from.has_extension() ? from.stem().generic_string() : plain_value_at(scenario_, "model");
  scenario_.erase("expect");  // it was measured of the job as it is
  const auto layout = scenario_.find("parallelism");
  if (layout != scenario_.end() && layout->is_object() && fills_cluster(*read.job)) {
    layout->erase("data");
  }
}

bool Explorer::reads(const std::string& text) const {
  try {
    (void)read_scenario_file(parse_scenario(file_, text), *presets_);
    return true;
  } catch (const InputError&) {
    return false;
  }
}

std::string Explorer::scenario_text(const ExploreState& state) const {
  const Json moved =
      JsonCursor::parse(file_, write_json(scenario_), JsonStyle::plain, sets_of(state, controls_))
          .json();
  if (moved.contains("power") || moves_power(state)) return text_of(moved);
  // What the site draws is among the answers wherever it is known of the servers.
  Json with_power = moved;
  with_power["power"] = Json::object();
  std::string text = text_of(with_power);
  return reads(text) ? text : text_of(moved);
}

ScenarioAnswer Explorer::answered(const std::string& text) const {
  return *answer_text(file_, text, *presets_, intervals_,
                      {.allow_oom = true, .shown_file = std::string(kExploredFile)});
}

std::string Explorer::answer(const ExploreState& state) const {
  return JsonText(answered(scenario_text(state)).json()).str();
}

std::string Explorer::fabric(const ExploreState& state) const {
  const ParsedScenario parsed = parse_scenario(file_, scenario_text(state));
  ScenarioFile file = read_scenario_file(parsed, *presets_);
  file.job->file = kExploredFile;
  RunResult result =
      step_to_answer(*std::move(file.job), std::make_shared<const Json>(parsed.root.json()));
  answer_step({.explain_fabric = true}, intervals_, result);
  return JsonText(result_json(result)).str();
}

std::string Explorer::layout(const ExploreState& state) const {
  const JsonCursor root = JsonCursor::parse(file_, scenario_text(state));
  SearchBase base = search_base_of(read_job_file(root, *presets_).draft, *presets_);
  const TuneResult found =
      tune(base.scenario, {.space = {},
                           .keep = 1,
                           .own_problem = std::move(base.own_problem),
                           .interrupted = [] { return InterruptGuard::interrupted(); },
                           .progress = {}});
  if (found.best.empty()) fail_without_layout(base.scenario, found, {});
  const Json tuned = tuned_scenario(root, found.best.front().scenario, file_, file_);
  Json moved = Json::object();
  for (const ExploreControl& control : controls_) {
    const auto chosen = state.find(control.path);
    const std::string value = control.searched        ? plain_value_at(tuned, control.path)
                              : chosen != state.end() ? chosen->second
                                                      : std::string();
    if (!value.empty()) moved[std::string(control.path)] = value;
  }
  return JsonText(Json::object({{"state", std::move(moved)}})).str();
}

std::string Explorer::explanation(const ExploreState& state, const std::string& field) const {
  const ScenarioAnswer answer = answered(scenario_text(state));
  const std::string file(kExploredFile);
  return JsonText(field_explanation_json(explain_field(file, answer, field, *presets_))).str();
}

}  // namespace lockstep
