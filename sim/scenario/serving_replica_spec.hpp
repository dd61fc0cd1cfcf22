/// A replica of a pool that a scenario serves with, as the models see it.
#pragma once

#include "models/generation/serving_replica.hpp"
#include "sim/scenario/serving_spec.hpp"

namespace lockstep {

ServingReplicaSpec replica_spec(const ServingPool& pool, const ServingSpec& spec);

}  // namespace lockstep
