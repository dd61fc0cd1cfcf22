/// The level of a stack's kernels at which the simulated step takes as long as a recorded one.
#pragma once

#include <string>
#include <vector>

#include "models/spec/learnt_level.hpp"
#include "sim/measured/recorded_stack.hpp"
#include "sim/measured/recordings.hpp"
#include "sim/scenario/preset_store.hpp"
#include "sim/scenario/scenario.hpp"

namespace lockstep {

struct RecordedLevel {
  LearntLevel level;
  std::vector<std::string> evidence;
  double recorded_s = 0;
  double before_s = 0, after_s = 0;  ///< the simulated step without and with the level
  /// Whether it is within a per mille of the recorded one: a step that the host or communication
  /// bounds does not follow its kernels.
  [[nodiscard]] bool reaches() const;
};

/// `job`: what was recorded, with the stack that its recording makes. `files`: where from, in
/// words.
RecordedLevel recorded_level(const Scenario& job, double recorded_s, const std::string& files);

/// The stack preset with that level, which holds for jobs like the one recorded.
std::string with_level(const std::string& preset, const RecordedLevel& level);

/// Sets the level of a stack that was read off `recorded` by the job that was recorded, the
/// scenario `written` (a file, or one that ships), and notes it. Throws InputError, also where the
/// recording is of another number of ranks.
void set_level_by(const std::string& written, const StepRecordings& recorded,
                  const PresetStore& presets, RecordedStack& stack);

}  // namespace lockstep
