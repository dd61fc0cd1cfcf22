/// Reads what predictions of published runs missed by, and says what a scenario has in common with
/// them: models/accuracy/prediction_interval.hpp makes an interval of the two.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "models/accuracy/prediction_interval.hpp"
#include "sim/scenario/preset_store.hpp"
#include "sim/scenario/scenario.hpp"

namespace lockstep {

/// Throws InputError. `file` is the name for messages.
ResidualTable read_residuals(const std::string& file, std::string_view text);

/// Those that ship: accuracy/published.json of the preset folders. Throws InputError.
ResidualTable load_residuals(const PresetStore& presets);

/// GPUs of the largest published run; on more than twice as many, it is a run that nobody had.
inline constexpr int kMostPublishedGpus = 16'384;

PredictionTraits traits_of(const Scenario& scenario);

/// Intervals of step times by the residuals that ship, read once, and shared by those that follow
/// each other while the file stays the same. Every command that prints a step
/// time takes its interval from here. May be called from several threads.
class StepIntervals {
 public:
  /// Throws InputError.
  explicit StepIntervals(const PresetStore& presets);
  /// Nothing where nodes are of several kinds: every published run was on one.
  [[nodiscard]] std::optional<PredictionInterval> of(const Scenario& scenario) const;
  /// The slow end of the interval over the step time; 1 where there is none.
  [[nodiscard]] double slow_end(const Scenario& scenario) const;

 private:
  std::shared_ptr<const ResidualTable> table_;
  mutable std::mutex mutex_;
  /// Those that were asked for, by what decides them: the points of a sweep share a few.
  mutable std::map<std::string, PredictionInterval> known_;
};

/// That of one scenario alone, whose nodes are of one kind. Throws InputError.
PredictionInterval interval_of(const Scenario& scenario, const PresetStore& presets);

}  // namespace lockstep
