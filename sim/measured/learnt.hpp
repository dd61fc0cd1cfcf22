/// What measured steps taught: the level of a stack by kind of job, and what is left open.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "models/spec/learnt_level.hpp"
#include "sim/measured/measured_steps.hpp"
#include "sim/measured/step_shares.hpp"
#include "sim/scenario/read_residuals.hpp"

namespace lockstep {

/// A further job, and how sure the answer would be after one step of it.
struct NextMeasurement {
  std::string words;
  double half_width = 0;
};

struct LearntKind {
  LearntLevel level;
  std::vector<std::string> evidence;  ///< "my-job.json: 12.3 s measured, 11.0 s predicted"
  StepShares shares{};                ///< mean over the steps
  double half_width_before = 0, half_width_after = 0;  ///< of the step time of a job like these
  double misfit = 0;  ///< what all steps say, believed alike, in prior deviations
  std::optional<NextMeasurement> next{};
};

struct Learnt {
  std::vector<LearntKind> kinds;
};

/// Requires at least one step.
Learnt learn(const MeasuredSteps& steps, const StepIntervals& intervals);

/// As a stack preset's "learnt" lists it.
nlohmann::ordered_json level_json(const LearntLevel& level,
                                  const std::vector<std::string>& evidence);

/// The stack preset that was learnt.
std::string learnt_preset(const MeasuredSteps& steps, const Learnt& learnt,
                          const std::string& file);

}  // namespace lockstep
