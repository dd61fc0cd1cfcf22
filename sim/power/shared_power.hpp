/// What several jobs on one fabric draw and cost, each of them and together.
#pragma once

#include <optional>
#include <vector>

#include "models/base/units.hpp"
#include "sim/congestion/shared_run.hpp"
#include "sim/power/power_series.hpp"
#include "sim/scenario/shared_scenario.hpp"

namespace lockstep {

/// A job beside the others, mean over its steps.
struct SharedJobPower {
  Seconds step;
  double tokens = 0;    ///< of a step
  Watts gpu, facility;  ///< of one of its GPUs; its nodes with their share of the site
  Watts peak;           ///< the highest that a meter of its part of the site reads
  double owned_usd_per_hour = 0;
  double usd_per_trillion_tokens = 0;
  PowerSeries drawn{};  ///< its part of the site over a step, and then as it waits for others
  Watts waiting{};      ///< its part while it stands still

  /// Of a step, at the site's meter.
  [[nodiscard]] Joules energy() const { return facility * step; }
};

/// Jobs that keep one rhythm, so that what one begins another has done.
struct StaggeredSteps {
  Seconds period;                         ///< of all: the longest step
  std::vector<Seconds> begins;            ///< of each job's steps, within it
  std::vector<double> longer;             ///< by which each job's step is: the price
  Watts low, high;                        ///< of the site then
  Watts low_together{}, high_together{};  ///< where all begin at once
};

/// Each job's steps begin where the site's highest power becomes least, one job after the other,
/// the one that swings most first; shorter steps wait for the longest at `waiting`. Power is a mean
/// over 1/240 of the period. Steps that keep no rhythm drift past one another instead, through
/// every such state. M equal jobs at even distances leave of a step's harmonics those that are
/// multiples of M.
StaggeredSteps staggered_steps(const std::vector<PowerSeries>& jobs,
                               const std::vector<Watts>& waiting);

struct SharedPower {
  std::vector<SharedJobPower> jobs;  ///< in the order of the scenario
  Watts idle;                        ///< of nodes that no job has, with their share of the site
  Watts facility;                    ///< of all of it: the sum
  Watts peak;                        ///< at most: every job at its highest at once
  double owned_usd_per_hour = 0;     ///< of all of it: the sum
  std::optional<StaggeredSteps> staggered{};  ///< of several jobs; with `idle`

  [[nodiscard]] Watts above(Watts site_limit) const { return peak - site_limit; }
};

/// A job's step takes the energy of its step alone (step_power.hpp) and, for as long as others make
/// it wait, PowerLevels::waiting: its work and its bytes stay the same. Where a card's limit binds
/// in passes that others lengthen, that is a little too low. The fabric's ports, and people, are
/// shared out by nodes. Requires scenario.power.
SharedPower shared_power(const SharedScenario& scenario, const SharedResult& result);

/// What a cloud asks in an hour for the GPUs of a job, or of all nodes. Requires a price.
double rent_per_hour(const SharedScenario& scenario, const SharedJob& job);
double rent_per_hour(const SharedScenario& scenario);

}  // namespace lockstep
