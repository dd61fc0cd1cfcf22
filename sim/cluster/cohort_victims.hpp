/// Which running jobs go for a waiting one, by the rules of ClusterQueues.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "sim/cluster/queue_state.hpp"

namespace lockstep {

/// Whether Kueue looks for jobs to preempt at all for one of so many GPUs.
bool looks_for_victims(const QueueSpec& spec, const CohortQuotas& quotas, std::uint16_t queue,
                       int gpus);

/// The search, on copies of the free GPUs and the quotas.
///
/// Without fair sharing: jobs of queues that borrow, below parts of the tree that do, go before
/// those of its own queue. A cohort in whose quota the job fits may take back what those outside
/// of it hold, whatever they borrow (Kueue's hierarchical reclaim); others' jobs beside go only if
/// its queue then does not borrow, or with borrow_within_cohort, below its priority. With it: from
/// the node of the highest share, as far as the strategies allow. Whoever need not go after all is
/// spared. Source: Kueue, pkg/scheduler/preemption (preemption.go, classical, fairsharing).
class CohortVictims {
 public:
  /// `state` outlives it.
  CohortVictims(const QueueState& state, std::uint32_t j, CohortQuotas quotas);
  CohortVictims(const CohortVictims&) = delete;
  CohortVictims& operator=(const CohortVictims&) = delete;

  /// The jobs to preempt; empty if the job does not fit even without all candidates.
  std::vector<std::uint32_t> find(const std::set<std::uint32_t>& spared);

 private:
  enum class Kind : std::uint8_t {
    own,             ///< of its own queue
    reclaimed,       ///< its place in the tree comes before the candidate's
    if_not_borrows,  ///< goes only if the job's queue then does not borrow
    any_time,
  };
  struct Candidate {
    std::uint32_t job;
    std::uint16_t queue;
    std::size_t common;  ///< the lowest cohort above both queues
    Kind kind;
  };
  /// Candidates of each queue that are left, the most dispensable first.
  using Left = std::map<std::size_t, std::vector<std::uint32_t>>;

  [[nodiscard]] std::vector<DispensableRank> of_queue(std::uint16_t queue,
                                                      const std::set<std::uint32_t>& spared) const;
  void collect_below(std::size_t cohort, std::size_t common, std::size_t skipped, bool advantage,
                     const std::set<std::uint32_t>& spared, std::vector<DispensableRank>& ranks,
                     std::map<std::uint32_t, Candidate>& out) const;
  [[nodiscard]] Kind kind_of(std::uint32_t of, bool advantage) const;
  [[nodiscard]] bool still_borrows(const Candidate& of) const;
  [[nodiscard]] bool fits(bool may_borrow) const;
  void take_away(std::uint32_t of);
  void give_back(std::uint32_t of);
  /// The fewest that suffice of those taken away, in that order; all are given back.
  std::vector<std::uint32_t> spare(const std::vector<std::uint32_t>& gone, bool enough,
                                   bool may_borrow);

  std::vector<std::uint32_t> classic(const std::set<std::uint32_t>& spared);
  std::vector<std::uint32_t> try_in_order(const std::vector<Candidate>& all, bool may_borrow);

  std::vector<std::uint32_t> by_shares(const std::set<std::uint32_t>& spared);
  /// The next queue to take from, by falling share from the root; kNoNode: none.
  std::size_t next_target(const Left& left, std::set<std::size_t>& pruned) const;
  [[nodiscard]] bool before(std::uint32_t a, std::uint32_t b) const;
  /// Of the two queues' ancestors (or themselves) those right below the lowest common cohort.
  [[nodiscard]] std::pair<std::size_t, std::size_t> below_common(std::size_t target) const;
  [[nodiscard]] bool allowed(FairStrategy strategy, std::size_t target, std::uint32_t of);

  const QueueState* state_;
  std::uint32_t job_;
  std::uint16_t queue_;
  const ClusterQueue* rules_;
  int gpus_;
  CohortQuotas quotas_;
  FreeGpus free_;
  NodeSet scratch_;
  const NodeSet* usable_ = nullptr;
  bool counted_ = false;  ///< the job's GPUs are among `quotas_`
};

}  // namespace lockstep
