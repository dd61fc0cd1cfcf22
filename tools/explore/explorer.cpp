#include "tools/explore/explorer.hpp"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <memory>
#include <string>
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
#include "sim/step/pool_memory.hpp"
#include "tools/console/failure.hpp"
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

/// Whether a layout that cannot be there gives way to the fastest one.
bool searches_layout(std::string_view path) { return path == "model" || path == "cluster.node"; }

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
  fills_cluster_ = fills_cluster(*read.job);
  gpus_ = read.job->gpus();
  if (layout != scenario_.end() && layout->is_object() && fills_cluster_) layout->erase("data");
}

bool Explorer::reads(const std::string& text) const {
  try {
    (void)read_scenario_file(parse_scenario(file_, text), *presets_);
    return true;
  } catch (const InputError&) {
    return false;
  }
}

void Explorer::set_replicas(const ExploreState& state, Json& scenario) const {
  Json& layout = scenario["parallelism"];
  // Other servers than those that the job takes a part of are taken whole, and so they are where
  // another layout does not share that part out.
  const bool whole =
      state.contains("cluster.nodes") || state.contains("cluster.node") || state.contains("model");
  int replica = 1;
  for (const char* width : {"tensor", "context", "pipeline"}) {
    const auto chosen = state.find(fmt::format("parallelism.{}", width));
    replica *= chosen != state.end() ? std::stoi(chosen->second) : layout.value(width, 1);
  }
  if (whole || replica < 1 || gpus_ % replica != 0) {
    layout.erase("data");
  } else {
    layout["data"] = gpus_ / replica;
  }
}

JsonCursor Explorer::changed(const ExploreState& state) const {
  Json scenario = scenario_;
  if (!fills_cluster_ && scenario.contains("parallelism")) set_replicas(state, scenario);
  const auto with_state = [&] {
    return JsonCursor::parse(file_, write_json(scenario), JsonStyle::plain,
                             sets_of(state, controls_));
  };
  JsonCursor out = with_state();
  const auto layout = scenario.find("parallelism");
  if (state.empty() || layout == scenario.end() || !layout->contains("shard_group")) return out;
  // No control has it: in layouts that it does not fit the replicas share out all together.
  try {
    (void)complete_measured(read_draft(out, *presets_), *presets_, {});
  } catch (const InputError& error) {
    if (error.problem().pointer != "/parallelism/shard_group") return out;
    layout->erase("shard_group");
    return with_state();
  }
  return out;
}

std::optional<Scenario> Explorer::job_of(const ExploreState& state) const {
  try {
    return complete_measured(read_draft(changed(state), *presets_), *presets_, {});
  } catch (const InputError&) {
    return std::nullopt;
  }
}

ExploreState Explorer::with(const ExploreState& before, const ExploreMove& move) const {
  ExploreState state = before;
  state.erase(move.path);
  const bool own = move.value == plain_value_at(scenario_, move.path);
  if (!move.path.empty() && !move.value.empty() && !own) state.emplace(move.path, move.value);
  return state;
}

std::string Explorer::scenario_text(const ExploreState& state) const {
  const Json moved = changed(state).json();
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

std::string Explorer::layout(const ExploreState& before, const ExploreMove& move) const {
  const ExploreState state = with(before, move);
  const JsonCursor root = JsonCursor::parse(file_, scenario_text(state));
  SearchBase base = search_base_of(read_job_file(root, *presets_).draft, *presets_);
  const TuneResult found =
      tune(base.scenario, {.space = {},
                           .keep = 1,
                           .own_problem = std::move(base.own_problem),
                           .slow_end = [&](const Scenario& s) { return intervals_.slow_end(s); },
                           .interrupted = [] { return InterruptGuard::interrupted(); },
                           .progress = {}});
  if (found.best.empty()) fail_without_layout(base.scenario, found, {});
  const Scenario& best = found.best.front().scenario;
  const Json tuned = tuned_scenario(root, best, file_, file_);
  ExploreState moved;
  for (const ExploreControl& control : controls_) {
    const auto chosen = state.find(control.path);
    const std::string value = control.searched        ? plain_value_at(tuned, control.path)
                              : chosen != state.end() ? chosen->second
                                                      : std::string();
    if (value == plain_value_at(scenario_, control.path)) continue;
    if (!value.empty()) moved.emplace(control.path, value);
  }
  const std::optional<Scenario> job = job_of(before);
  return JsonText(
             Json::object({{"state", moved},
                           {"said", job ? followed_text(*job, best, move.path) : std::string()}}))
      .str();
}

FollowedJob Explorer::whole(const ExploreState& state, std::string_view moved) const {
  const ScenarioDraft draft = read_draft(changed(state), *presets_);
  if (moved != "model") return follow(draft, moved, *presets_);
  // Another model's layout is no choice of the person's: the fastest is as good as any.
  return {.scenario = complete_measured(draft, *presets_, {}), .followed = {}};
}

std::string Explorer::moved(const ExploreState& before, const ExploreMove& move) const {
  ExploreState state = with(before, move);
  Json reply = Json::object({{"state", state}, {"said", ""}, {"search", false}});
  try {
    const FollowedJob job = whole(state, move.path);
    for (const auto& [path, value] : job.followed) state = with(state, {path, value});
    reply["state"] = state;
    if (const auto was = job_of(before)) {
      reply["said"] = followed_text(*was, job.scenario, move.path);
    }
    reply["search"] = move.path == "model" && !check_memory(job.scenario).fits;
  } catch (const InputError& error) {
    if (!searches_layout(move.path) || !may_follow(error.problem().pointer)) throw;
    reply["search"] = true;
  }
  return JsonText(reply).str();
}

std::string Explorer::positions(const ExploreState& state, std::string_view path) const {
  const ExploreControl& control = control_at(path, controls_);
  const std::optional<Scenario> job = job_of(state);
  std::vector<std::string> values = job ? stops_of(control, *job) : control.values;
  const auto chosen = state.find(path);
  for (const std::string& value :
       {plain_value_at(scenario_, path), chosen == state.end() ? std::string() : chosen->second}) {
    if (!value.empty() && std::ranges::find(values, value) == values.end()) values.push_back(value);
  }
  Json positions = Json::array();
  for (const std::string& value : values) {
    Json position = Json::object({{"value", value}});
    const ExploreState moved = with(state, {std::string(control.path), value});
    try {
      const MemoryVerdict memory = check_memory(whole(moved, path).scenario);
      const auto gib = [](Bytes size) { return size.base_units() / (1 << 30); };
      if (control.path == "model" && !memory.fits) {
        position["search"] = true;
      } else if (!memory.fits) {
        position["too_large"] = {{"needed_gib", gib(memory.peak.needed())},
                                 {"usable_gib", gib(memory.usable)}};
      }
    } catch (const InputError& error) {
      if (searches_layout(control.path) && may_follow(error.problem().pointer)) {
        position["search"] = true;
      } else {
        position["error"] = failure_json(current_failure()).at("error");
      }
    }
    // A slider stops where there are answers, and where it stands.
    const bool stands = chosen == state.end()
                            ? !job || value == plain_value_at(scenario_, control.path)
                            : value == chosen->second;
    if (control.kind == ControlKind::count && position.contains("error") && !stands) continue;
    positions.push_back(std::move(position));
  }
  return JsonText(Json::object({{"positions", std::move(positions)}})).str();
}

std::string Explorer::explanation(const ExploreState& state, const std::string& field) const {
  const ScenarioAnswer answer = answered(scenario_text(state));
  const std::string file(kExploredFile);
  return JsonText(field_explanation_json(explain_field(file, answer, field, *presets_))).str();
}

std::optional<std::string> Explorer::asked(
    std::string_view what, std::vector<std::pair<std::string, std::string>> said) const {
  const auto taken = [&](std::string_view name) {
    std::optional<std::string> value;
    std::erase_if(said, [&](const auto& each) {
      if (each.first != name) return false;
      value = each.second;
      return true;
    });
    return value;
  };
  const bool explains = what == "explain", moves = what == "moved" || what == "layout",
             places = what == "positions";
  const auto field = explains ? taken("field") : std::nullopt;
  const auto path = moves || places ? taken("moved") : std::nullopt;
  const auto value = moves ? taken("to") : std::nullopt;
  const ExploreState state = explore_state(said, controls_, scenario_);
  const ExploreMove move{path.value_or(""), value.value_or("")};
  if (path) (void)control_at(*path, controls_);
  if (!move.value.empty()) (void)explore_state({{move.path, move.value}}, controls_, scenario_);
  if (what == "answer") return answer(state);
  if (what == "fabric") return fabric(state);
  if (what == "layout") return layout(state, move);
  if (what == "moved" && path) return moved(state, move);
  if (places && path) return positions(state, move.path);
  if (explains && field) return explanation(state, *field);
  if (what == kExploredFile) return scenario_text(state);
  return std::nullopt;
}

}  // namespace lockstep
