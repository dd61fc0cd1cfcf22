/// Which data-parallel replicas do the same thing at the same time.
#pragma once

#include <vector>

#include "sim/scenario/scenario.hpp"
#include "sim/step/plan.hpp"
#include "sim/step/wiring.hpp"

namespace lockstep {

/// Sorts replicas into classes by what they run and where they sit: a class has the same slow GPUs and
/// the same kind of path between its stages. With `unfold` each replica is a class of its own.
std::vector<ReplicaClass> replica_classes(const Scenario& scenario, const StepPlan& plan, bool unfold);

}  // namespace lockstep
