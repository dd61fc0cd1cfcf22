/// What an answer rests on, as parts of its page: what was simulated, every value of the scenario,
/// what was assumed, and the values of the presets that it names, each with its source.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "models/base/json_cursor.hpp"
#include "sim/answer/step_answer.hpp"
#include "sim/scenario/preset_store.hpp"
#include "sim/scenario/read_cluster.hpp"

namespace lockstep {

class Page;

/// For an answer, or its page, to hold: the document as it was parsed.
WrittenScenario written_in(const JsonCursor& root);

/// Every value that the scenario's file says, by its path; prices are among them. Nothing where the
/// answer is of no file.
void add_inputs(Page& page, const WrittenScenario& written);

/// A preset by its kind and name: "gpus", "h100_sxm5_80gb".
using NamedPreset = std::pair<std::string, std::string>;

/// A line of what was simulated: "Load", "24 requests a second".
struct NamedWords {
  std::string name, words;
};
/// The machine in two lines: how many nodes of what, and the fabric that joins them.
std::vector<NamedWords> cluster_words(const Cluster& cluster);

/// A job in lines as well: its model and batch, its software.
std::vector<NamedWords> job_words(const Scenario& scenario);

/// What a page says below its results.
struct AnswerBasis {
  std::string title = "What was simulated";
  std::vector<NamedWords> simulated{};
  WrittenScenario written{};  ///< null: the answer is of no file
  std::vector<std::string> assumptions{};
  /// That has the presets whose values are listed with their sources: those that `written` names,
  /// and `named`. Null: none are listed.
  const PresetStore* presets = nullptr;
  std::vector<NamedPreset> named{};
};
/// A section of each of the four that says anything.
void add_basis(Page& page, const AnswerBasis& basis);

/// Presets that a step, or a cluster, takes.
std::vector<NamedPreset> presets_of(const Scenario& scenario, const PresetStore& presets);
std::vector<NamedPreset> presets_of(const Cluster& cluster, const PresetStore& presets);
/// Presets that a scenario's JSON names under keys such as "node" and "model", and those that these
/// name in turn, as a node its GPU. Names that are no presets are left out.
std::vector<NamedPreset> presets_named(const nlohmann::ordered_json& written,
                                       const PresetStore& presets);
/// A table that can be searched: every value of these presets with its source and note.
void add_sources(Page& page, const std::vector<NamedPreset>& named, const PresetStore& presets);

}  // namespace lockstep
