/// Who is admitted from ClusterQueues, and who goes for whom: Kueue's scheduler.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "sim/cluster/queue_state.hpp"

namespace lockstep {

/// Cycle by cycle the first waiting job of each queue is tried: those that need not borrow first,
/// then by priority, then by submission. A job is admitted where its queue's quota has room and
/// the placer finds its GPUs (as Kueue's topology-aware scheduling does: a job that is admitted
/// starts). One that is not is passed over where its queue is best_effort, and tried again in the
/// next pass; where it is strict, its queue waits behind it. Meanwhile, in the cycle, its quota is
/// kept from those behind it, unless its queue may reclaim that from anybody.
///
/// A job of no more than its queue's nominal quota may preempt: jobs of queues that borrow, before
/// those of its own queue; the lowest priority first, of equals whoever started last. With others'
/// jobs only where its queue then does not borrow, else its own queue's alone; with
/// borrow_within_cohort also a wider one, and others' jobs of lower priority while it borrows.
/// Whoever need not go after all is spared. Victims go at once. Source: Kueue,
/// pkg/scheduler/scheduler.go and pkg/scheduler/preemption/preemption.go (classic preemption).
class ClusterQueuePass {
 public:
  void run(QueueState& state);

 private:
  struct Head {
    std::uint16_t queue;
    std::uint32_t job;
    bool borrows;
  };

  void look_anew(const QueueState& state);
  [[nodiscard]] std::vector<Head> heads(const QueueState& state);
  /// Whether anything is left to try in a next cycle.
  bool cycle(QueueState& state);
  static void keep_quota(const ClusterQueue& rules, const Head& head, int gpus,
                         CohortQuotas& quotas);
  /// Nobody is preempted twice in an instant.
  bool preempt(QueueState& state, const Head& head, const CohortQuotas& quotas);

  std::vector<std::vector<std::uint32_t>> classes_;  ///< of jobs, by queue
  std::vector<WaitingWalk> walks_;                   ///< by queue
  std::set<std::uint32_t> preempted_;                ///< in this instant
};

}  // namespace lockstep
