/// A training step whose NICs and fabric carry something else too: a checkpoint on its way to
/// storage, a copy to peers, data.
///
/// Streams are flows beside the step's own, so that they share by max-min fairness: one of each
/// NIC port, for all of the step. Ports whose links the step uses in the same way are one
/// flow, as its replicas are. A stream loads its port both ways: all of a step's transfers leave
/// through one port and arrive through another, so what all ports send slows the same ones as what
/// they receive. simulate_shared() has every flow by itself; tests/sim/run/storage_traffic_test.cpp
/// compares the two.
///
/// In whole trees (no dragonfly, torus, rails that never meet, planes, imports or faults) storage
/// lies beyond the top: a stream to it crosses leaf and spine uplinks evenly. Elsewhere, and to
/// peers, streams meet the step on NICs alone.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "models/base/units.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/step/step.hpp"
#include "topologies/fabrics/fabric.hpp"

namespace lockstep {

/// Of payload.
struct NodeStream {
  BytesPerSecond all;   ///< at most, all nodes together: what servers do
  BytesPerSecond node;  ///< at most, each node
  bool to_top = true;   ///< to or from storage; false: between nodes
};

struct SharedStep {
  double step_s = 0;
  /// Above the budget, where a sample of the replicas was simulated: between which every replica on
  /// its own lies, as StepReport::band.
  std::optional<StepBand> band{};
  std::vector<BytesPerSecond> rates;  ///< of each stream: mean over the step, all nodes together
};

/// What a port gets, as a line rate, when all ports of all nodes send to storage beyond the top of
/// a whole tree at once; elsewhere all of its own bandwidth.
BytesPerSecond port_rate_to_top(const Fabric& fabric, int nodes);

/// simulate_step() beside streams. Requires a scenario from complete_scenario(), and limits above
/// 0. `budget` as StepOptions has it.
SharedStep shared_step(const Scenario& scenario, std::span<const NodeStream> streams,
                       double budget = kStepBudget);

}  // namespace lockstep
