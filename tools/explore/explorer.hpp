/// What the page of `lockstep explore` asks, answered: a scenario with some values moved.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/json_cursor.hpp"
#include "sim/answer/answer.hpp"
#include "sim/scenario/preset_store.hpp"
#include "sim/scenario/scenario.hpp"
#include "tools/explore/controls.hpp"
#include "tools/explore/follow.hpp"

namespace lockstep {

/// How answers call the scenario that the page hands out.
inline constexpr std::string_view kExploredFile = "explore.json";

/// One control that somebody moves.
struct ExploreMove {
  std::string path{};   ///< empty: none
  std::string value{};  ///< empty: as the scenario has it
};

/// Answers about one scenario. All functions may be called from several threads.
class Explorer {
 public:
  /// `file` is where the text is from: files that the scenario names lie beside it. Throws
  /// InputError for what is no scenario of one step.
  Explorer(const std::string& file, const std::string& text, const std::vector<std::string>& sets,
           const PresetStore& presets);

  [[nodiscard]] const std::vector<ExploreControl>& controls() const { return controls_; }
  /// The scenario as it is before anything is moved.
  [[nodiscard]] const nlohmann::ordered_json& scenario() const { return scenario_; }
  /// "llama3-405b-16k", of the file that it is from; without one the model's, empty where it has
  /// none.
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const PresetStore& presets() const { return *presets_; }

  /// What the page asks, by name: "answer", "fabric", "layout", "moved", "positions", "explain" (of
  /// "field") or "explore.json", about the state that `said` holds beside "moved" and "to", one
  /// control and its new value. Nothing: there is no such question, or it lacks a part.
  [[nodiscard]] std::optional<std::string> asked(
      std::string_view what, std::vector<std::pair<std::string, std::string>> said) const;

  // Each throws InputError about the state.

  /// The scenario of a state as a file of its own; beside the first one it gives the same answers.
  [[nodiscard]] std::string scenario_text(const ExploreState& state) const;
  /// The bytes of `lockstep run explore.json --allow-oom --format json` with that file.
  [[nodiscard]] std::string answer(const ExploreState& state) const;
  /// The same with what --explain-fabric adds.
  [[nodiscard]] std::string fabric(const ExploreState& state) const;
  /// {"state": {"parallelism.tensor": "4", ...}, "said": ...}: the state with the fastest layout
  /// that fits, and what differs from `before` by it.
  [[nodiscard]] std::string layout(const ExploreState& before, const ExploreMove& move) const;
  /// {"state": {...}, "said": "data width 128 -> 64 follows", "search": false}: a state whose job
  /// is whole after a move (follow.hpp). "search": a layout for what was chosen is to be searched,
  /// as the present one does not fit it; then the state may be none that answers.
  [[nodiscard]] std::string moved(const ExploreState& before, const ExploreMove& move) const;
  /// {"positions": [{"value": "4"}, ...]}: where a control may stand after what follows a move
  /// there; "search": true where a layout is searched. Counts have those with an answer alone. One
  /// without says why: {"too_large": {"needed_gib": 112.4, "usable_gib": 74.5}}, or {"error":
  /// {"place": ...}}.
  [[nodiscard]] std::string positions(const ExploreState& state, std::string_view path) const;
  /// The JSON of `lockstep explain explore.json FIELD`.
  [[nodiscard]] std::string explanation(const ExploreState& state, const std::string& field) const;

 private:
  [[nodiscard]] bool reads(const std::string& text) const;
  /// Of a job on a part of its servers: replicas on as many GPUs as before, or on all of them.
  void set_replicas(const ExploreState& state, nlohmann::ordered_json& scenario) const;
  [[nodiscard]] JsonCursor changed(const ExploreState& state) const;
  [[nodiscard]] std::optional<Scenario> job_of(const ExploreState& state) const;
  [[nodiscard]] FollowedJob whole(const ExploreState& state, std::string_view moved) const;
  [[nodiscard]] ExploreState with(const ExploreState& before, const ExploreMove& move) const;
  [[nodiscard]] ScenarioAnswer answered(const std::string& text) const;

  const PresetStore* presets_;
  StepIntervals intervals_;
  std::vector<ExploreControl> controls_;
  std::string name_;
  std::string file_;           ///< explore.json in the folder of the scenario
  bool fills_cluster_ = true;  ///< so that the number of replicas follows from its GPUs
  int gpus_ = 0;               ///< of the job as it is before anything is moved
  nlohmann::ordered_json scenario_;
};

}  // namespace lockstep
