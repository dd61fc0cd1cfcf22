/// What a search for layouts starts from: a scenario whose own layout may be wrong, or missing.
#pragma once

#include <string>
#include <string_view>

#include "sim/scenario/preset_store.hpp"
#include "sim/scenario/read_scenario.hpp"
#include "sim/scenario/scenario.hpp"

namespace lockstep {

struct SearchBase {
  Scenario scenario;
  /// What is wrong with the scenario's own layout ("/batch/sequences: found 2048; allowed: ...");
  /// empty: nothing. If something is, `scenario` has every GPU as a replica of its own in its
  /// place, which need not be a layout that can be run either.
  std::string own_problem;
};

/// Completes a scenario as complete_measured() does, but for rules that a layout alone can break:
/// the search finds one that keeps them. Throws InputError for everything else.
SearchBase search_base_of(const ScenarioDraft& draft, const PresetStore& presets,
                          const ScenarioOptions& options = {});

}  // namespace lockstep
