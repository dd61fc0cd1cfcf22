/// Where the ranks of a job sit, and which replicas are unlike others by plan: on other kinds of
/// nodes, or with more micro batches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "sim/scenario/scenario.hpp"
#include "topologies/fabrics/placement.hpp"

namespace lockstep {

/// Where the ranks of a job sit.
PlacementSpec placement_spec(const Scenario& scenario);

/// What replicas of a kind have in common.
struct ReplicaVariant {
  std::vector<std::uint32_t> pools;  ///< of each pipeline stage
  int micro_batches = 1;
};

struct ReplicaVariants {
  std::vector<ReplicaVariant> list;  ///< in the order in which replicas first show them
  std::vector<std::uint32_t> of;     ///< by replica; empty: all are of the first
};

/// Pool of each node of the cluster in turn: ranks fill pools in order.
class PoolOfNode {
 public:
  explicit PoolOfNode(const Scenario& scenario);
  [[nodiscard]] std::uint32_t operator()(int node) const;

 private:
  std::vector<int> ends_;  ///< by pool: its last node, and one
};

/// Requires that all ranks of a stage of a replica are on one pool.
ReplicaVariants replica_variants(const Scenario& scenario, const Placement& placement);

/// The job as a replica with that many micro batches sees it.
TrainingJob job_of_replica(const TrainingJob& job, int micro_batches);

/// Throws InputError where the hardware or the batch of a job is unequal, and `what` cannot take
/// that: "lockstep tune".
void require_equal(const Scenario& scenario, std::string_view what);

}  // namespace lockstep
