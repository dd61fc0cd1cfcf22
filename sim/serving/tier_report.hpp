/// The memory behind the caches of a scenario's replicas: what loads take, and what they came to.
///
/// Keys and values of a token are kept once, whole. From the host each GPU loads its own part,
/// which of latent attention, and where there are more ranks than heads, is a copy; out of the pool
/// one copy comes, which the NICs of the ranks share out (as between pools, kv_shards.hpp). A NIC
/// that GPUs share takes the loads of all of them one after the other. Drives of a node read what
/// its ranks load, for all of its replicas one after the other, and the copy to the GPUs goes on
/// meanwhile.
#pragma once

#include <optional>

#include "sim/serving/simulate_serving.hpp"

namespace lockstep {

class ServingReplica;  // models/generation/serving_replica.hpp

/// Behind the pool that works on prompts; none: the scenario has no such memory.
std::optional<TierPlan> tier_plan(const ServingSpec& spec, const ServingReplica& replica);

/// Host memory behind the pool that decodes, which keeps sequences that leave a full cache; none:
/// there is one pool, or no such memory.
std::optional<TierPlan> decoding_tier_plan(const ServingSpec& spec, const ServingReplica& replica);

/// None: the scenario has no such memory.
std::optional<ServingTierReport> tier_report(const ServingSpec& spec, const ServingReplica& replica,
                                             const ServeResult& result);

}  // namespace lockstep
