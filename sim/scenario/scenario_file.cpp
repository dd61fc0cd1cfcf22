#include "sim/scenario/scenario_file.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <utility>

#include <nlohmann/json.hpp>

#include "sim/scenario/read_queue.hpp"
#include "sim/scenario/read_serving.hpp"
#include "sim/scenario/read_traffic.hpp"

namespace lockstep {
namespace {

/// The keys that make a scenario one of a kind, in the order in which they decide.
constexpr std::array kKindKeys{std::pair{ScenarioKind::collective, std::string_view("collective")},
                               std::pair{ScenarioKind::traffic, std::string_view("traffic")},
                               std::pair{ScenarioKind::serving, std::string_view("serving")},
                               std::pair{ScenarioKind::jobs, std::string_view("jobs")},
                               std::pair{ScenarioKind::queue, std::string_view("queue")},
                               std::pair{ScenarioKind::rl, std::string_view("rl")},
                               std::pair{ScenarioKind::run, std::string_view("run")}};

/// Keys that a file has where a command takes it, and no file of another one.
constexpr std::array kKeysOfCommands{
    std::pair{std::string_view("candidates"), std::string_view("plan")},
    std::pair{std::string_view("axes"), std::string_view("sweep")},
    std::pair{std::string_view("filling"), std::string_view("queue fill")},
    std::pair{std::string_view("collective"), std::string_view("comm")},
    std::pair{std::string_view("traffic"), std::string_view("comm")},
    std::pair{std::string_view("model"), std::string_view("run")},
    std::pair{std::string_view("jobs"), std::string_view("run")},
    std::pair{std::string_view("queue"), std::string_view("run")},
    std::pair{std::string_view("serving"), std::string_view("run")},
    std::pair{std::string_view("rl"), std::string_view("run")}};

/// Measured runs are a list of rows.
void refuse_rows(const JsonCursor& root) {
  const auto& json = root.json();
  if (!json.is_array() || json.empty() || !json.front().is_object()) return;
  root.fail(fmt::format(
      "an object; of a list of measured runs, lockstep run {0}#ROW takes one, and lockstep "
      "validate --rows {0} all",
      root.file()));
}

/// Keys of files that are about scenarios, and what takes these.
constexpr std::array kKeysOfStudies{
    std::pair{std::string_view("candidates"), std::string_view("plan")},
    std::pair{std::string_view("axes"), std::string_view("sweep")},
    std::pair{std::string_view("filling"), std::string_view("queue fill")}};

void refuse_studies(const JsonCursor& root) {
  if (!root.is_object()) return;
  const std::vector<std::string> keys = root.keys();
  if (std::ranges::find(keys, "model") != keys.end()) return;
  for (const auto& [key, command] : kKeysOfStudies) {
    if (std::ranges::find(keys, key) == keys.end()) continue;
    root.at(key).fail(fmt::format("no such key in a scenario: lockstep {} {} takes this file",
                                  command, root.file()));
  }
}

}  // namespace

std::string_view name_of(ScenarioKind kind) {
  for (const auto& [known, key] : kKindKeys) {
    if (known == kind) return key;
  }
  return "step";
}

ScenarioKind scenario_kind(const JsonCursor& root) {
  if (!root.is_object()) return ScenarioKind::step;
  const std::vector<std::string> keys = root.keys();  // asking for one would count it as known
  for (const auto& [kind, key] : kKindKeys) {
    if (std::ranges::find(keys, key) != keys.end()) return kind;
  }
  return ScenarioKind::step;
}

bool has_run(const JsonCursor& root) {
  if (!root.is_object()) return false;
  const std::vector<std::string> keys = root.keys();  // asking for one would count it as known
  return std::ranges::find(keys, "run") != keys.end();
}

ParsedScenario parse_scenario(const std::string& file, std::string text,
                              const std::vector<std::string>& set) {
  JsonCursor root = JsonCursor::parse(file, text, JsonStyle::plain, set);
  const ScenarioKind kind = scenario_kind(root);
  return {.text = std::move(text), .set = set, .root = std::move(root), .kind = kind};
}

void require_kind(const JsonCursor& root, std::initializer_list<ScenarioKind> kinds,
                  std::string_view allowed) {
  refuse_rows(root);
  refuse_studies(root);
  const ScenarioKind kind = scenario_kind(root);
  if (kind == ScenarioKind::step || std::ranges::find(kinds, kind) != kinds.end()) return;
  root.at(name_of(kind)).fail(std::string(allowed));
}

std::string_view command_of(const JsonCursor& root) {
  if (!root.is_object()) return "run";
  const std::vector<std::string> keys = root.keys();
  const auto found = std::ranges::find_if(kKeysOfCommands, [&keys](const auto& of) {
    return std::ranges::find(keys, of.first) != keys.end();
  });
  return found == kKeysOfCommands.end() ? "run" : found->second;
}

void refuse_other_document(const JsonCursor& root, std::string_view command, std::string_view is) {
  refuse_rows(root);
  if (!root.is_object()) return;
  const std::vector<std::string> keys = root.keys();
  const auto has = [&keys](const auto& of) {
    return std::ranges::find(keys, of.first) != keys.end();
  };
  const bool own = std::ranges::any_of(
      kKeysOfCommands, [&](const auto& of) { return of.second == command && has(of); });
  const auto other = std::ranges::find_if(kKeysOfCommands, has);
  if (own || other == kKeysOfCommands.end()) return;
  root.at(other->first)
      .fail(fmt::format("no such key in {}: lockstep {} {} takes this file", is, other->second,
                        root.file()));
}

ScenarioFile read_scenario_file(const ParsedScenario& parsed, const PresetStore& presets,
                                const ScenarioOptions& options) {
  ScenarioFile out{.kind = parsed.kind};
  switch (parsed.kind) {
    case ScenarioKind::step:
    case ScenarioKind::run: {
      JobFile job = read_job_file(parsed.root, presets);
      out.job = complete_measured(job.draft, presets, options);
      out.job->folding = options.folding;
      out.run = std::move(job.run);
      break;
    }
    case ScenarioKind::jobs:
      out.jobs = read_shared_scenario(parsed.root, presets, options.profiles);
      break;
    case ScenarioKind::queue:
      out.queue = read_queue(parsed.root, presets);
      break;
    case ScenarioKind::serving:
      out.serving = read_serving(parsed.root, presets);
      break;
    case ScenarioKind::rl: {
      ScenarioOptions of_rl = options;
      of_rl.set = parsed.set;
      out.rl = read_rl_scenario(parsed.root.file(), parsed.text, presets, of_rl);
      out.run = parsed.root.read_whole(
          [&] { return read_run_of(parsed.root, presets, out.rl->training.site); });
      break;
    }
    case ScenarioKind::traffic:
      out.traffic = read_traffic(parsed.root, presets);
      break;
    case ScenarioKind::collective:
      break;
  }
  return out;
}

}  // namespace lockstep
