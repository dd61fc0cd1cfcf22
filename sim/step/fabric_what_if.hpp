/// What the fabric costs a step, by simulation: the same step on a fabric whose switches never
/// limit, and on this one with one thing changed.
#pragma once

#include <string>
#include <vector>

#include "sim/scenario/scenario.hpp"
#include "sim/step/step.hpp"

namespace lockstep {

struct FabricWhatIf {
  std::string change;  ///< "oversubscription of leaves 8 -> 4"
  double step_s = 0;
  BucketTimes seconds{};
};

/// Whether the switches of the scenario's fabric can hold back what its NICs could carry.
bool switches_can_limit(const Scenario& scenario);

/// The step with every message as fast as its NICs let it: those of a drawing at the rate of their
/// cables, those that a fault slows down at what it leaves them.
FabricWhatIf on_full_fabric(const Scenario& scenario, const StepOptions& options = {});

/// Each change of the fabric, the NICs or the order of ranks that the scenario leaves room for,
/// fastest first. Changes after which the job cannot be planned are left out.
std::vector<FabricWhatIf> fabric_relief(const Scenario& scenario, const StepOptions& options = {});

}  // namespace lockstep
