/// Reads what a scenario says of the memory behind the caches of its replicas.
#pragma once

#include "models/base/json_cursor.hpp"
#include "sim/scenario/declared_members.hpp"
#include "sim/scenario/serving_spec.hpp"

namespace lockstep {

void declare_cache_tiers(const DeclaredMembers& member, ServingTiers& out);

/// Holds them against the node and the engine, and says what was assumed. Requires the pools.
void settle_cache_tiers(const JsonCursor& serving, ServingSpec& out);

}  // namespace lockstep
