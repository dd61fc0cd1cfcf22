/// What the running jobs of ClusterQueues hold, against their quotas and those of their cohorts.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sim/scenario/queue_spec.hpp"

namespace lockstep {

/// A queue has for itself what it does not lend, and shares the rest of its nominal quota with its
/// cohort; beyond its nominal quota it borrows what others have not taken of theirs, up to its
/// limit. Cohorts are flat. Source: Kueue, pkg/cache/scheduler/resource_node.go, and the API's
/// words on borrowingLimit and lendingLimit. May be copied, to try what a change would make of it.
class CohortQuotas {
 public:
  /// `spec` outlives it.
  explicit CohortQuotas(const QueueSpec& spec);

  /// Whether there are ClusterQueues: else nothing here may be called.
  [[nodiscard]] bool used() const { return !uses_.empty(); }
  [[nodiscard]] std::uint16_t queue_of(std::uint16_t account) const { return queue_of_[account]; }
  [[nodiscard]] bool same_cohort(std::uint16_t a, std::uint16_t b) const {
    return uses_[a].cohort == uses_[b].cohort;
  }
  [[nodiscard]] std::int64_t held(std::uint16_t queue) const { return uses_[queue].held; }
  /// GPUs that its jobs may take beside those that they hold.
  [[nodiscard]] std::int64_t available(std::uint16_t queue) const;
  /// GPUs that its jobs may take when no GPU of the cohort is held.
  [[nodiscard]] std::int64_t most(std::uint16_t queue) const;
  /// Whether it holds, with so many more, others' GPUs.
  [[nodiscard]] bool borrows(std::uint16_t queue, std::int64_t more = 0) const {
    return uses_[queue].held + more > spec_->cluster_queues[queue].nominal;
  }
  /// From now on it holds so many more; below 0: fewer.
  void add(std::uint16_t queue, std::int64_t gpus);

 private:
  struct Use {
    std::size_t cohort = 0;  ///< of `cohorts_`; each queue without one has its own
    std::int64_t own = 0;    ///< what it lends to nobody
    std::int64_t held = 0;

    /// What it has of what the cohort shares.
    [[nodiscard]] std::int64_t shared() const { return std::max<std::int64_t>(0, held - own); }
  };
  struct Cohort {
    std::int64_t shares = 0, held = 0;
  };

  /// The most that it may have of what the cohort shares.
  [[nodiscard]] std::int64_t most_shared(std::uint16_t queue) const;

  const QueueSpec* spec_;
  std::vector<std::uint16_t> queue_of_;  ///< by account
  std::vector<Use> uses_;
  std::vector<Cohort> cohorts_;
};

}  // namespace lockstep
