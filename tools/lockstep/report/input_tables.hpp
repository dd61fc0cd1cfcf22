/// What an answer rests on, as tables of its page: every value of the scenario, and the values of
/// the presets that it names, each with its source.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/answer/step_answer.hpp"
#include "sim/scenario/preset_store.hpp"

namespace lockstep {

class Page;

/// Every value that the scenario's file says, by its path; prices are among them. Nothing where the
/// answer is of no file.
void add_inputs(Page& page, const WrittenScenario& written);

/// Presets that a step takes, as kinds and names.
std::vector<std::pair<std::string, std::string>> presets_of(const Scenario& scenario,
                                                            const PresetStore& presets);
/// A table that can be searched: every value of these presets with its source and note.
void add_sources(Page& page, const std::vector<std::pair<std::string, std::string>>& named,
                 const PresetStore& presets);

}  // namespace lockstep
