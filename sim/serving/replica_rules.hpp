/// The rules of a replica's queue: those of its engine, for all of its ranks.
#pragma once

#include "sim/serving/replica_queue.hpp"

namespace lockstep {

class ServingReplica;  // models/generation/serving_replica.hpp

ReplicaRules rules_of(const ServingReplica& replica);

}  // namespace lockstep
