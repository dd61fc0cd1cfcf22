/// The answer to a scenario with "queue", many jobs under a scheduler, as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "sim/answer/step_answer.hpp"
#include "sim/cluster/queue_summary.hpp"
#include "sim/cluster/simulate_queue.hpp"
#include "sim/scenario/queue_spec.hpp"

namespace lockstep {

/// A simulated queue, what it comes to, and the scenario that it is of.
struct QueueAnswer {
  const QueueSpec& spec;
  const QueueResult& result;
  QueueSummary summary;
  const WrittenScenario& written;
};

/// Shares of the cluster's GPU time, by QueueBucket; they add up to 1, and are 0 of no time.
std::array<double, kQueueBuckets> queue_shares(const QueueAnswer& answer);

/// With units in the names, at most 12 significant digits, in a fixed order.
nlohmann::ordered_json queue_json(const QueueAnswer& answer);

}  // namespace lockstep
