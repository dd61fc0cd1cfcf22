/// Simulates one training step of a scenario.
#pragma once

#include "sim/scenario/scenario.hpp"
#include "sim/step/step_report.hpp"

namespace lockstep {

struct StepOptions {
  bool unfold = false;           ///< every replica on its own, whether or not it differs
  bool record_timeline = false;  ///< fill StepReport::timeline
  bool keep_actors = false;      ///< fill StepReport::actors when unfolded too
};

/// Replays one step in the steady state: gradients of this step are reduced, parameters of the step
/// before are gathered. Does not check that the job fits in memory: models/memory.hpp does.
/// Requires a scenario from complete_scenario(). The same scenario gives the same report, bit for
/// bit.
StepReport simulate_step(const Scenario& scenario, const StepOptions& options = {});

}  // namespace lockstep
