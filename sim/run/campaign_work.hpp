/// How much work a campaign is, told before any of it begins.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "models/base/input_error.hpp"
#include "sim/run/campaign.hpp"
#include "sim/scenario/run_spec.hpp"

namespace lockstep {

/// What one trajectory is expected to meet.
struct ExpectedWork {
  double wall_s = 0;       ///< by Daly's time ratio for the first tier; at most the horizon
  double failures = 0;     ///< of all modes in that time, from above
  double checkpoints = 0;  ///< that are simulated one by one
  /// How often a recovery has to begin until none of its phases meets another failure: e^(R / M).
  double attempts = 1;
  /// Of the campaign's modes, the one that fails most often; none where a log says what fails.
  std::optional<std::size_t> most_frequent;
};
ExpectedWork expected_work(const Campaign& campaign);

/// How long one trajectory takes to simulate, on one core.
Seconds trajectory_estimate(const Campaign& campaign);

/// How many trajectories there are, and whether one is kept with every phase of it.
struct PlannedWork {
  double trajectories = 1;
  bool timeline = false;
};
/// What is too much about a campaign, and which key makes it so; nothing where it can be simulated:
/// at most 1e10 events in all trajectories, and failures far enough apart for a job to get going
/// again. `file` is the scenario's.
std::optional<InputProblem> excessive_work(const Campaign& campaign, const RunSpec& run,
                                           const PlannedWork& planned, const std::string& file);
/// Throws that as an InputError.
void check_work(const Campaign& campaign, const RunSpec& run, const PlannedWork& planned,
                const std::string& file);

/// What most of the work is, and the key that makes it so.
struct MostWork {
  std::string pointer;  ///< "/run/reliability/modes/2"
  std::string what;     ///< "2.3e+07 failures in 100 trajectories"
};
MostWork most_work(const Campaign& campaign, const RunSpec& run, double trajectories);

}  // namespace lockstep
