/// Reads a scenario from JSON: checks every value, fills in what was left open, names what it
/// assumed. scenarios/README.md describes the format; scenarios/scenario.schema.json is for
/// editors.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/scenario/names.hpp"
#include "sim/scenario/preset_store.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/scenario/scenario_draft.hpp"

namespace lockstep {

struct ScenarioOptions {
  /// "path=value", applied to the JSON first, in order: "cluster.nodes=384", or a JSON pointer
  /// "/parallelism/data=32". The value is JSON, or else a string.
  std::vector<std::string> set{};
  /// Profiles of the scenario's card and network: files, or names of presets (read_profile.hpp).
  std::vector<std::string> profiles{};
  Folding folding = Folding::automatic;
};

/// Throws InputError. `file` is the name for messages, and paths in the text start from its folder.
Scenario read_scenario(const std::string& file, std::string_view text, const PresetStore& presets,
                       const ScenarioOptions& options = {});

/// Reads and completes the scenario in the file at `path`.
Scenario load_scenario(const std::string& path, const PresetStore& presets,
                       const ScenarioOptions& options = {});

/// "model": the name of a preset, a Hugging Face config, or a shape.
void read_model_choice(const JsonCursor& from, const PresetStore& presets, ScenarioDraft& draft);
/// What the members of `from` say about how the job trains: parallelism, batch, precision,
/// recompute, stack, stragglers.
void read_job_draft(const JsonCursor& from, const PresetStore& presets, ScenarioDraft& draft);

/// The first half: what the text says, before anything is filled in or checked against the rest.
ScenarioDraft read_draft(const std::string& file, std::string_view text, const PresetStore& presets,
                         const ScenarioOptions& options = {});
/// Of a text that is parsed already, changes and all.
ScenarioDraft read_draft(const JsonCursor& root, const PresetStore& presets);

/// The second half: complete_scenario(), with the profiles that the options name.
Scenario complete_measured(const ScenarioDraft& draft, const PresetStore& presets,
                           const ScenarioOptions& options);

}  // namespace lockstep
