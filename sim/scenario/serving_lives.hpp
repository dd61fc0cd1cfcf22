/// What a scenario says of replicas that fail, come back, and are switched on and off.
#pragma once

#include "models/base/json_cursor.hpp"
#include "sim/scenario/declared_members.hpp"
#include "sim/scenario/serving_spec.hpp"

namespace lockstep {

void declare_autoscale(const DeclaredMembers& member, ServingAutoscale& out);
void declare_replica_start(const DeclaredMembers& member, ReplicaStart& out);
void declare_serving_failures(const DeclaredMembers& member, ServingFailureSpec& out);

/// Holds numbers of replicas against the pools, which `searched` ones have none of yet, and says
/// what was assumed. Throws InputError.
void settle_serving_lives(const JsonCursor& serving, bool searched, ServingSpec& out);

}  // namespace lockstep
