/// What the page of `lockstep explore` can change: one row a control, from which the page's form,
/// the state in its address and the checks of what comes back are all made.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "sim/scenario/preset_store.hpp"

namespace lockstep {

enum class ControlKind : std::uint8_t {
  name,    ///< a preset's, or what the scenario has
  choice,  ///< one of `values`
  count,   ///< a whole number; `values` are where its slider stops
  number,  ///< any number; `values` are where its slider stops
};

/// A value of a scenario that a person moves.
struct ExploreControl {
  std::string_view path;   ///< as --set takes it: "cluster.nodes"
  std::string_view title;  ///< "Servers"
  std::string_view group;  ///< "Machines"
  /// The member of an answer that says it where nobody chose: "job.parallelism.tensor"; empty:
  /// none.
  std::string_view answered;
  ControlKind kind = ControlKind::choice;
  std::vector<std::string> values{};
  double low = 0, high = 0;  ///< of numbers
  bool rare = false;         ///< behind "more" on the page
  bool searched = false;     ///< a search for the fastest layout sets it
};

/// All of them, in the order in which they are applied: a server before its NICs.
std::vector<ExploreControl> explore_controls(const PresetStore& presets);

/// What was chosen, by path; what has no entry is as in the scenario.
using ExploreState = std::map<std::string, std::string, std::less<>>;

/// What an address says ("cluster.nodes=64"), checked: only controls, each once, and only values
/// that a control can take, so that none of them names a file. `own` is the scenario, whose own
/// names are taken too. Throws InputError.
ExploreState explore_state(const std::vector<std::pair<std::string, std::string>>& said,
                           const std::vector<ExploreControl>& controls,
                           const nlohmann::ordered_json& own);

/// The control at a path. Throws InputError where there is none.
const ExploreControl& control_at(std::string_view path,
                                 const std::vector<ExploreControl>& controls);

/// "cluster.nodes=64", for --set, in the order of the controls.
std::vector<std::string> sets_of(const ExploreState& state,
                                 const std::vector<ExploreControl>& controls);

/// The value at a dotted path as an address has it; empty: there is none, or no plain value.
std::string plain_value_at(const nlohmann::ordered_json& scenario, std::string_view path);

}  // namespace lockstep
