#include "sim/serving/replica_rules.hpp"

#include <cmath>

#include "models/generation/serving_replica.hpp"

namespace lockstep {

ReplicaRules rules_of(const ServingReplica& replica) {
  const ServingReplicaSpec& spec = replica.spec();
  const ServingEngine& e = spec.engine;
  const std::int64_t data = spec.attention_data;
  return {.order = e.order,
          .pass_tokens = e.pass_tokens * data,
          .most_sequences = e.most_sequences * data,
          .block = e.block,
          .reserved = e.reserved,
          .cache_tokens = replica.cache_tokens(),
          .poll = replica.host().poll,
          .attention_ranks = spec.attention_data,
          .balance_wait = e.balance_wait,
          .batch_wait = e.batch_wait,
          .enough = static_cast<std::int64_t>(std::ceil(e.batch_wait_tokens * e.pass_tokens)),
          .tokens_per_pass = spec.speculation.tokens_per_pass()};
}

}  // namespace lockstep
