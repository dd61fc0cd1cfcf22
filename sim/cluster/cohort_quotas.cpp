#include "sim/cluster/cohort_quotas.hpp"

#include <cassert>
#include <map>
#include <string>

namespace lockstep {

CohortQuotas::CohortQuotas(const QueueSpec& spec) : spec_(&spec) {
  if (spec.cluster_queues.empty()) return;
  queue_of_.resize(spec.accounts.size());
  std::map<std::string, std::size_t> known;
  for (const ClusterQueue& queue : spec.cluster_queues) {
    Use use{.cohort = cohorts_.size()};
    if (!queue.cohort.empty()) {
      use.cohort = known.try_emplace(queue.cohort, cohorts_.size()).first->second;
    }
    if (use.cohort == cohorts_.size()) cohorts_.emplace_back();
    if (queue.lending_limit >= 0) {
      use.own = std::max<std::int64_t>(0, queue.nominal - queue.lending_limit);
    }
    cohorts_[use.cohort].shares += queue.nominal - use.own;
    for (const std::uint16_t account : queue.accounts) {
      queue_of_[account] = static_cast<std::uint16_t>(uses_.size());
    }
    uses_.push_back(use);
  }
}

std::int64_t CohortQuotas::most_shared(std::uint16_t queue) const {
  const ClusterQueue& of = spec_->cluster_queues[queue];
  const std::int64_t shares = cohorts_[uses_[queue].cohort].shares;
  if (of.borrowing_limit < 0) return shares;
  return std::min(shares, of.nominal - uses_[queue].own + of.borrowing_limit);
}

std::int64_t CohortQuotas::available(std::uint16_t queue) const {
  const Use& use = uses_[queue];
  const Cohort& cohort = cohorts_[use.cohort];
  const std::int64_t left = std::min(cohort.shares - cohort.held,  //
                                     most_shared(queue) - use.shared());
  return std::max<std::int64_t>(0, use.own - use.held) + std::max<std::int64_t>(0, left);
}

std::int64_t CohortQuotas::most(std::uint16_t queue) const {
  return uses_[queue].own + most_shared(queue);
}

void CohortQuotas::add(std::uint16_t queue, std::int64_t gpus) {
  Use& use = uses_[queue];
  const std::int64_t before = use.shared();
  use.held += gpus;
  assert(use.held >= 0);
  cohorts_[use.cohort].held += use.shared() - before;
}

}  // namespace lockstep
