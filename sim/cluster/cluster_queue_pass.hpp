/// Who is admitted from ClusterQueues, and who goes for whom: Kueue's scheduler.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "sim/cluster/queue_state.hpp"

namespace lockstep {

/// Cycle by cycle the first waiting job of each queue is tried: those that reach least far up the
/// tree for their quota first, then by priority, then by submission; with fair sharing whoever
/// leaves the least share, from the root down, of equals by priority and submission. A job is
/// admitted where its queue's quota has room and the placer finds its GPUs (as Kueue's
/// topology-aware scheduling does: a job that is admitted starts). One that is not is passed over
/// where its queue is best_effort, and tried again in the next pass; where it is strict, its queue
/// waits behind it. Meanwhile, in the cycle, its quota is kept from those behind it, unless its
/// queue may reclaim that from anybody. Whom it may preempt: cohort_victims.hpp; victims go at
/// once. Source: Kueue, pkg/scheduler/scheduler.go and fair_sharing_iterator.go.
class ClusterQueuePass {
 public:
  void run(QueueState& state);

 private:
  struct Head {
    std::uint16_t queue;
    std::uint32_t job;
    int reach;  ///< CohortQuotas::Reach::height of its GPUs
  };

  void look_anew(const QueueState& state);
  [[nodiscard]] std::vector<Head> heads(const QueueState& state);
  /// Whether anything is left to try in a next cycle.
  bool cycle(QueueState& state);
  /// Takes the head whose turn it is; `left` is in the order without fair sharing, and not empty.
  static Head take_next(const QueueState& state, std::vector<Head>& left,
                        const CohortQuotas& quotas);
  static void keep_quota(const QueueSpec& spec, const Head& head, int gpus, CohortQuotas& quotas);
  /// Nobody is preempted twice in an instant.
  bool preempt(QueueState& state, const Head& head, const CohortQuotas& quotas);

  std::vector<std::vector<std::uint32_t>> classes_;  ///< of jobs, by queue
  std::vector<WaitingWalk> walks_;                   ///< by queue
  std::set<std::uint32_t> preempted_;                ///< in this instant
};

}  // namespace lockstep
