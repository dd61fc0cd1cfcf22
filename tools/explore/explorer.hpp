/// What the page of `lockstep explore` asks, answered: a scenario with some values moved.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "sim/answer/answer.hpp"
#include "sim/scenario/preset_store.hpp"
#include "tools/explore/controls.hpp"

namespace lockstep {

/// How answers call the scenario that the page hands out.
inline constexpr std::string_view kExploredFile = "explore.json";

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

  // Each throws InputError about the state.

  /// The scenario of a state as a file of its own; beside the first one it gives the same answers.
  [[nodiscard]] std::string scenario_text(const ExploreState& state) const;
  /// The bytes of `lockstep run explore.json --allow-oom --format json` with that file.
  [[nodiscard]] std::string answer(const ExploreState& state) const;
  /// The same with what --explain-fabric adds.
  [[nodiscard]] std::string fabric(const ExploreState& state) const;
  /// {"state": {"parallelism.tensor": "4", ...}}: the state with the fastest layout that fits.
  [[nodiscard]] std::string layout(const ExploreState& state) const;
  /// The JSON of `lockstep explain explore.json FIELD`.
  [[nodiscard]] std::string explanation(const ExploreState& state, const std::string& field) const;

 private:
  [[nodiscard]] bool reads(const std::string& text) const;
  [[nodiscard]] ScenarioAnswer answered(const std::string& text) const;

  const PresetStore* presets_;
  StepIntervals intervals_;
  std::vector<ExploreControl> controls_;
  std::string name_;
  std::string file_;  ///< explore.json in the folder of the scenario
  nlohmann::ordered_json scenario_;
};

}  // namespace lockstep
