/// What several jobs on one fabric draw and cost, each of them and together.
#pragma once

#include <optional>
#include <vector>

#include "models/base/units.hpp"
#include "sim/congestion/shared_run.hpp"
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

  /// Of a step, at the site's meter.
  [[nodiscard]] Joules energy() const { return facility * step; }
};

struct SharedPower {
  std::vector<SharedJobPower> jobs;  ///< in the order of the scenario
  Watts idle;                        ///< of nodes that no job has, with their share of the site
  Watts facility;                    ///< of all of it: the sum
  Watts peak;                        ///< at most: every job at its highest at once
  double owned_usd_per_hour = 0;     ///< of all of it: the sum

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
