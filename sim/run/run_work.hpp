/// What a run of weeks repeats: a training step, or an iteration of reinforcement learning.
#pragma once

#include <optional>
#include <string>

#include "models/base/units.hpp"
#include "models/checkpoint.hpp"
#include "sim/rl/rl_step.hpp"
#include "sim/scenario/rl_spec.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/scenario/scenario_file.hpp"
#include "topologies/fabrics/fabric.hpp"

namespace lockstep {

/// The scenarios that it names outlive it.
struct RunWork {
  /// Of "rl" the one of its training.
  const Scenario& scenario;
  /// An iteration of which is repeated in place of a training step.
  const RlScenario* rl = nullptr;

  RunWork(const Scenario& of) : scenario(of) {}                      // NOLINT
  RunWork(const RlScenario& of) : scenario(of.training), rl(&of) {}  // NOLINT

  /// That only generate: a failure of one stops the job too.
  [[nodiscard]] int engine_nodes() const { return rl == nullptr ? 0 : rl->rl.generation.nodes; }
  [[nodiscard]] int nodes() const { return scenario.nodes + engine_nodes(); }
  [[nodiscard]] int gpus() const { return scenario.gpus() + engine_nodes() * scenario.node.gpus; }
};

/// What the run of a file repeats. Requires a "run" of one job; the file outlives it.
RunWork repeated_work(const ScenarioFile& file);

/// One repetition, with nothing else on the network.
struct RepeatedStep {
  double step_s = 0;
  double tokens = 0;  ///< that it trains on; of "rl" prompts and responses
  Flops flops;        ///< model FLOP of training, attention in full; of "rl" of all updates of the
                      ///< actor and the critic
  std::string words;  ///< how it was simulated, where its replicas are a sample
  Scenario update;    ///< the training step in it, with the batch that the step engine runs
  double update_s = 0;
  double training_share = 1;  ///< of its time, in such steps; the rest leaves the NICs alone
  std::optional<RlReport> iteration;
};
RepeatedStep repeated_step(const RunWork& work);

/// Its time on another fabric.
double step_time_on(const RunWork& work, const FabricSpec& fabric);

/// What a checkpoint holds: the model that is trained, with its optimiser; of "rl" the actor's and
/// the critic's.
CheckpointBytes state_of(const RunWork& work);

}  // namespace lockstep
