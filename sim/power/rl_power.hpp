/// What an iteration of reinforcement learning draws, phase by phase.
#pragma once

#include <string_view>
#include <vector>

#include "models/base/units.hpp"
#include "sim/power/step_power.hpp"
#include "sim/rl/rl_step.hpp"

namespace lockstep {

/// One phase of an iteration, on the GPUs that it is of.
struct RlPhasePower {
  std::string_view name;   ///< as JSON says it: "decode", or the name of an RlBucket
  std::string_view title;  ///< as a person reads it
  double gpu_seconds = 0;
  Joules gpus;  ///< of these GPUs alone
  Joules site;  ///< with their share of hosts, network, cooling and losses, at the site's meter

  /// Of one of these GPUs.
  [[nodiscard]] Watts gpu_mean() const { return gpus / Seconds{gpu_seconds}; }
};

struct RlPower {
  StepPower site;                    ///< over the iteration, of both pools; no stages
  std::vector<RlPhasePower> phases;  ///< that take time; all `site` together: site.energy()
};

/// Training and its forward passes draw as step_power() says, a rollout as its passes do
/// (models/generation/serving_replica.hpp). A GPU whose process waits, for the last response, for a
/// reward or for the other pool, draws GpuPowerConstants::awake; while training state goes to the
/// host and back, with its traffic through HBM; while new weights come, GpuPowerConstants::active
/// and what their bytes take. Hosts and cooling follow the mean of the iteration, in which a
/// GPU-second of every phase has the same share; supplies follow the instant. Where more than a
/// million changes of power would repeat, later updates draw their mean. Requires "power", and a
/// report with what RlQuestion::power keeps.
RlPower rl_power(const RlScenario& scenario, const RlReport& report);

}  // namespace lockstep
