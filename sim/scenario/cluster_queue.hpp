/// Quotas as Kueue has them: ClusterQueues, and cohorts in which they lend to each other.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// What happens behind a job of a ClusterQueue that cannot be admitted.
enum class QueueingStrategy : std::uint8_t {
  best_effort,  ///< BestEffortFIFO: whoever fits is admitted
  strict,       ///< StrictFIFO: all of its queue wait
};
constexpr std::array<std::string_view, 2> kQueueingStrategyNames{"best_effort", "strict"};

/// Which jobs of its own ClusterQueue a job may preempt.
enum class WithinClusterQueue : std::uint8_t {
  never,
  lower_priority,
  lower_or_newer_equal_priority,  ///< also those of its priority that were submitted after it
};
constexpr std::array<std::string_view, 3> kWithinClusterQueueNames{"never", "lower_priority",
                                                                   "lower_or_newer_equal_priority"};

/// Which jobs of queues that borrow a job may preempt for what its own queue has lent.
enum class ReclaimWithinCohort : std::uint8_t { never, lower_priority, any };
constexpr std::array<std::string_view, 3> kReclaimWithinCohortNames{"never", "lower_priority",
                                                                    "any"};

/// When fair sharing lets a job of another part of the tree go for one that waits. Shares are those
/// right below the lowest cohort above both queues, the waiting job's with it.
enum class FairStrategy : std::uint8_t {
  less_than_or_equal_to_final_share,  ///< ours is then no higher than theirs without the victim
  less_than_initial_share,            ///< ours is then lower than theirs was
};
constexpr std::array<std::string_view, 2> kFairStrategyNames{"less_than_or_equal_to_final_share",
                                                             "less_than_initial_share"};

/// A cohort with settings of its own; one that queues only name has none.
struct QueueCohort {
  std::string name;
  std::string parent{};               ///< empty: it is a root
  std::int64_t nominal = 0;           ///< GPUs for all below it, beside those of its queues
  std::int64_t borrowing_limit = -1;  ///< of GPUs outside of it; below 0: none
  std::int64_t lending_limit = -1;    ///< of its subtree's; below 0: all of them
  double weight = 1;
};

struct ClusterQueue {
  std::string name;
  std::string cohort{};                   ///< empty: it neither borrows nor lends
  std::vector<std::uint16_t> accounts{};  ///< QueueSpec::accounts whose jobs it admits
  std::int64_t nominal = 0;               ///< GPUs that are its own
  std::int64_t borrowing_limit = -1;      ///< of others' GPUs; below 0: none
  std::int64_t lending_limit = -1;        ///< of its own; below 0: all of them
  QueueingStrategy strategy = QueueingStrategy::best_effort;
  WithinClusterQueue within = WithinClusterQueue::never;
  ReclaimWithinCohort reclaim = ReclaimWithinCohort::never;
  /// Whether a job that has to borrow may preempt others' jobs, of lower priority than its own.
  bool borrow_within_cohort = false;
  std::optional<int> max_priority_threshold{};  ///< of those: their priority is no higher
  double weight = 1;  ///< fair sharing: what it borrows counts by so much less

  [[nodiscard]] bool preempts() const {
    return within != WithinClusterQueue::never || reclaim != ReclaimWithinCohort::never;
  }
};

}  // namespace lockstep
