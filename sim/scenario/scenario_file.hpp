/// A scenario file is one value, whatever it is about. Its kind is decided here alone; a command
/// reads the file once and asks the value what it has. What cannot stand in one file together:
/// feature_rules.hpp.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/json_cursor.hpp"
#include "sim/scenario/preset_store.hpp"
#include "sim/scenario/queue_spec.hpp"
#include "sim/scenario/read_scenario.hpp"
#include "sim/scenario/rl_spec.hpp"
#include "sim/scenario/run_spec.hpp"
#include "sim/scenario/serving_spec.hpp"
#include "sim/scenario/shared_scenario.hpp"
#include "sim/scenario/traffic.hpp"

namespace lockstep {

/// What a scenario is about. All but `step` are the key that makes them so.
enum class ScenarioKind : std::uint8_t {
  step,        ///< one training step
  run,         ///< days to months of them, with failures and checkpoints
  jobs,        ///< several jobs on one fabric
  rl,          ///< a step of reinforcement learning
  queue,       ///< many jobs under a scheduler
  serving,     ///< requests on pools of replicas
  traffic,     ///< messages and collectives on a fabric
  collective,  ///< a collective at several sizes
};
/// "step", "run", "jobs", "rl", "queue", "serving", "traffic", "collective".
std::string_view name_of(ScenarioKind kind);

/// By the first of the keys that decide it; a step where there is none.
ScenarioKind scenario_kind(const JsonCursor& root);

/// Whether it goes on for days to months, of whatever kind.
bool has_run(const JsonCursor& root);

/// A parsed file, before its values are read.
struct ParsedScenario {
  std::string text;              ///< as the file has it
  std::vector<std::string> set;  ///< changes that `root` has (ScenarioOptions::set)
  JsonCursor root;
  ScenarioKind kind = ScenarioKind::step;
};
/// Throws InputError for text that is no JSON.
ParsedScenario parse_scenario(const std::string& file, std::string text,
                              const std::vector<std::string>& set = {});

/// Throws InputError at the key that makes the scenario one of a kind that is not in `kinds`;
/// `allowed` says what the command takes. Of a plan or a sweep it names the command that takes it.
void require_kind(const JsonCursor& root, std::initializer_list<ScenarioKind> kinds,
                  std::string_view allowed);

/// The command that takes a document: "plan", "sweep", "comm", "queue fill"; "run" of a scenario.
std::string_view command_of(const JsonCursor& root);

/// Throws InputError for a document that another command than `command` ("plan", "sweep", "comm",
/// "queue fill") takes, and names that; `is`: what the command reads, "a plan".
void refuse_other_document(const JsonCursor& root, std::string_view command, std::string_view is);

/// All that a file says, read, completed and checked.
struct ScenarioFile {
  ScenarioKind kind = ScenarioKind::step;
  std::optional<Scenario> job{};  ///< of a step or a run
  std::optional<RunSpec> run{};   ///< of a job, or of steps of reinforcement learning
  std::optional<RlScenario> rl{};
  std::optional<SharedScenario> jobs{};
  std::optional<QueueSpec> queue{};
  std::optional<ServingSpec> serving{};
  std::optional<TrafficScenario> traffic{};
};
/// Throws InputError. A "collective" is not read here but by the study of it. Of the options `set`
/// is unused, as the parsed scenario has the changes.
ScenarioFile read_scenario_file(const ParsedScenario& parsed, const PresetStore& presets,
                                const ScenarioOptions& options = {});

}  // namespace lockstep
