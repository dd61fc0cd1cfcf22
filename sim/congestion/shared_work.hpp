/// How much work a scenario of several jobs is, told before any of it begins.
#pragma once

#include <string>

#include "models/base/units.hpp"
#include "sim/scenario/shared_scenario.hpp"

namespace lockstep {

struct SharedWork {
  std::string pointer;  ///< of the key that makes most of it: "/background/0/every"
  std::string what;     ///< "2.1e+09 rounds of checkpoint"
  Seconds takes;        ///< on one core
  Bytes holds;          ///< what is recorded of every transfer
};

/// Of simulate_shared(), the runs of each job alone included. How long the jobs run is taken from
/// their arithmetic: rounds and failures that repeat go on as long as they do.
SharedWork shared_work(const SharedScenario& scenario);

}  // namespace lockstep
