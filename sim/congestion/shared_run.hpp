/// Replays several training jobs at once on one fabric, with other traffic and with failures.
#pragma once

#include <string>
#include <vector>

#include "sim/congestion/congestion_report.hpp"
#include "sim/congestion/recorder.hpp"
#include "sim/scenario/shared_scenario.hpp"

namespace lockstep {

struct SharedOptions {
  bool alone = true;  ///< also runs each job and traffic by itself, to compare
  bool draw = false;  ///< fill CongestionReport::use
  CongestionLimits limits;
};

/// What a job got done.
struct SharedJobResult {
  std::vector<double> steps_s;  ///< of each step, in order
  double mfu_full = 0;          ///< at the mean step, attention counted in full
  double alone_mfu_full = 0;
};

struct SharedResult {
  CongestionReport congestion;
  std::vector<SharedJobResult> jobs;  ///< in the order of the scenario
};

/// Every replica of every job is simulated on its own, since neighbours differ. Throws InputError
/// where a job cannot be planned, or where nothing moves any more and no repair is due.
SharedResult simulate_shared(const SharedScenario& scenario, const SharedOptions& options = {});

}  // namespace lockstep
