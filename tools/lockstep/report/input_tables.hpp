/// What an answer rests on, as parts of its page: what was simulated, every value of the scenario,
/// what was assumed, and the values of the presets that it names, each with its source.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/answer/step_answer.hpp"
#include "sim/scenario/preset_store.hpp"
#include "sim/scenario/read_cluster.hpp"

namespace lockstep {

class Page;

/// Every value that the scenario's file says, by its path; prices are among them. Nothing where the
/// answer is of no file.
void add_inputs(Page& page, const WrittenScenario& written);

/// A line of what was simulated: "Load", "24 requests a second".
struct NamedWords {
  std::string name, words;
};
/// The machine in two lines: how many nodes of what, and the fabric that joins them.
std::vector<NamedWords> cluster_words(const Cluster& cluster);

/// What a page says below its results.
struct AnswerBasis {
  std::string title = "What was simulated";
  std::vector<NamedWords> simulated{};
  WrittenScenario written{};  ///< null: the answer is of no file
  std::vector<std::string> assumptions{};
};
/// A section of each of the three that says anything.
void add_basis(Page& page, const AnswerBasis& basis);

/// Presets that a step takes, as kinds and names.
std::vector<std::pair<std::string, std::string>> presets_of(const Scenario& scenario,
                                                            const PresetStore& presets);
/// A table that can be searched: every value of these presets with its source and note.
void add_sources(Page& page, const std::vector<std::pair<std::string, std::string>>& named,
                 const PresetStore& presets);

}  // namespace lockstep
