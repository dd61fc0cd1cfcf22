#include "sim/cluster/cluster_queue_pass.hpp"

#include <algorithm>
#include <functional>
#include <optional>
#include <tuple>
#include <utility>

namespace lockstep {
namespace {

std::uint16_t queue_of_job(const QueueState& state, std::uint32_t j) {
  return state.cohorts().queue_of(state.job(j).account);
}

std::optional<Holding> place_now(const QueueState& state, std::uint32_t j) {
  const QueueJob& job = state.job(j);
  NodeSet scratch;
  return state.place(state.free(), j, state.nodes_for(j, state.now(), job.limit, scratch));
}

/// Whether Kueue looks for victims at all.
bool looks_for_victims(const ClusterQueue& rules, int gpus) {
  return gpus <= rules.nominal || rules.borrow_within_cohort;
}

/// The search for jobs to preempt for a waiting job, on copies of the free GPUs and the quotas.
class VictimSearch {
 public:
  VictimSearch(const QueueState& state, std::uint32_t j, CohortQuotas quotas)
      : state_(&state),
        job_(j),
        queue_(queue_of_job(state, j)),
        rules_(&state.spec().cluster_queues[queue_]),
        quotas_(std::move(quotas)) {}
  VictimSearch(const VictimSearch&) = delete;
  VictimSearch& operator=(const VictimSearch&) = delete;

  /// The jobs to preempt; empty if the job does not fit even without all candidates.
  std::vector<std::uint32_t> victims(const std::set<std::uint32_t>& spared) {
    const bool under_nominal = quotas_.held(queue_) < rules_->nominal;
    const std::vector<std::uint32_t> own = own_candidates(spared);
    std::vector<std::uint32_t> all;
    if (under_nominal || rules_->borrow_within_cohort) all = others_candidates(spared);
    const bool others = !all.empty();
    all.insert(all.end(), own.begin(), own.end());
    if (all.empty()) return {};
    free_.emplace(state_->free());
    usable_ = state_->nodes_for(job_, state_->now(), state_->job(job_).limit, scratch_);
    if (others && rules_->borrow_within_cohort) return while_borrowing(all);
    if (others && under_nominal) {
      std::vector<std::uint32_t> out = fewest(all, false);
      if (!out.empty()) return out;
    }
    return fewest(own, true);
  }

 private:
  [[nodiscard]] bool is_own(std::uint32_t of) const { return queue_of_job(*state_, of) == queue_; }

  /// Candidates of the job's own queue, the most dispensable first.
  [[nodiscard]] std::vector<std::uint32_t> own_candidates(
      const std::set<std::uint32_t>& spared) const {
    std::vector<std::uint32_t> out;
    if (rules_->within == WithinClusterQueue::never) return out;
    const std::int32_t priority = state_->job(job_).priority;
    const bool equals = rules_->within == WithinClusterQueue::lower_or_newer_equal_priority;
    for (const DispensableRank& of : state_->admitted(queue_)) {
      if (of.priority > priority || (of.priority == priority && !equals)) break;
      const bool newer = of.priority < priority || of.job > job_;
      if (newer && !spared.contains(of.job)) out.push_back(of.job);
    }
    return out;
  }

  /// Candidates of queues that borrow, the most dispensable first.
  [[nodiscard]] std::vector<std::uint32_t> others_candidates(
      const std::set<std::uint32_t>& spared) const {
    std::vector<DispensableRank> ranks;
    if (rules_->reclaim == ReclaimWithinCohort::never) return {};
    const std::size_t queues = state_->spec().cluster_queues.size();
    for (std::size_t q = 0; q < queues; ++q) {
      const auto other = static_cast<std::uint16_t>(q);
      if (other == queue_ || !quotas_.same_cohort(queue_, other) || !quotas_.borrows(other)) {
        continue;
      }
      for (const DispensableRank& of : state_->admitted(other)) {
        const bool lower = of.priority < state_->job(job_).priority;
        if (!lower && rules_->reclaim == ReclaimWithinCohort::lower_priority) break;
        if (!spared.contains(of.job)) ranks.push_back(of);
      }
    }
    std::ranges::sort(ranks, std::less<DispensableRank>{});
    std::vector<std::uint32_t> out;
    out.reserve(ranks.size());
    for (const DispensableRank& of : ranks) out.push_back(of.job);
    return out;
  }

  void take_away(std::uint32_t of) {
    free_->give(state_->state(of).held);
    quotas_.add(queue_of_job(*state_, of), -state_->job(of).gpus);
  }
  void give_back(std::uint32_t of) {
    free_->take(state_->state(of).held);
    quotas_.add(queue_of_job(*state_, of), state_->job(of).gpus);
  }
  [[nodiscard]] bool fits(bool may_borrow) const {
    const int gpus = state_->job(job_).gpus;
    return (may_borrow || !quotas_.borrows(queue_, gpus)) && gpus <= quotas_.available(queue_) &&
           state_->place(*free_, job_, usable_).has_value();
  }

  /// Victims if the queue may borrow: jobs of other queues below a priority may be preempted while
  /// it borrows, those above it only if it then does not.
  std::vector<std::uint32_t> while_borrowing(std::vector<std::uint32_t> all) {
    std::int64_t below = state_->job(job_).priority;
    if (const auto& most = rules_->max_priority_threshold) {
      below = std::min(below, std::int64_t{*most} + 1);
    }
    if (quotas_.held(queue_) >= rules_->nominal) {
      std::erase_if(
          all, [&](std::uint32_t of) { return !is_own(of) && state_->job(of).priority >= below; });
    }
    return fewest(all, true, below);
  }

  /// The fewest victims that suffice. Jobs of other queues with a priority of `below` or more are
  /// preempted only if the queue does not borrow.
  std::vector<std::uint32_t> fewest(const std::vector<std::uint32_t>& of, bool may_borrow,
                                    std::optional<std::int64_t> below = {}) {
    std::vector<std::uint32_t> gone;
    bool enough = false;
    for (const std::uint32_t next : of) {
      if (!is_own(next) && !quotas_.borrows(queue_of_job(*state_, next))) continue;
      if (below && !is_own(next) && state_->job(next).priority >= *below) may_borrow = false;
      take_away(next);
      gone.push_back(next);
      enough = fits(may_borrow);
      if (enough) break;
    }
    std::vector<std::uint32_t> out;
    for (std::size_t v = gone.size(); v-- > 0;) {
      give_back(gone[v]);
      if (!enough || fits(may_borrow)) continue;
      take_away(gone[v]);
      out.push_back(gone[v]);
    }
    for (const std::uint32_t victim : out) give_back(victim);
    return out;
  }

  const QueueState* state_;
  std::uint32_t job_;
  std::uint16_t queue_;
  const ClusterQueue* rules_;
  CohortQuotas quotas_;
  std::optional<FreeGpus> free_;
  NodeSet scratch_;
  const NodeSet* usable_ = nullptr;
};

}  // namespace

void ClusterQueuePass::look_anew(const QueueState& state) {
  walks_.clear();
  for (const std::vector<std::uint32_t>& of : classes_) walks_.emplace_back(state.waiting(), of);
}

std::vector<ClusterQueuePass::Head> ClusterQueuePass::heads(const QueueState& state) {
  std::vector<Head> out;
  for (std::size_t q = 0; q < walks_.size(); ++q) {
    WaitingWalk& walk = walks_[q];
    // Limits of accounts and users hold back only their own jobs, not the queue.
    while (!walk.empty()) {
      if (state.over_owner_quota(state.waiting().classes()[walk.front_class()])) {
        walk.pop_class();
      } else if (state.held_back(walk.front().job)) {
        walk.pop();
      } else {
        break;
      }
    }
    if (walk.empty()) continue;
    const auto queue = static_cast<std::uint16_t>(q);
    const std::uint32_t j = walk.front().job;
    out.push_back({queue, j, state.cohorts().borrows(queue, state.job(j).gpus)});
  }
  std::ranges::sort(out, {}, [&](const Head& of) {
    return std::tuple(of.borrows, -std::int64_t{state.job(of.job).priority}, of.job);
  });
  return out;
}

void ClusterQueuePass::keep_quota(const ClusterQueue& rules, const Head& head, int gpus,
                                  CohortQuotas& quotas) {
  if (!looks_for_victims(rules, gpus) || rules.reclaim == ReclaimWithinCohort::any) return;
  std::int64_t most = rules.nominal - quotas.held(head.queue);
  if (head.borrows) most = rules.borrowing_limit < 0 ? gpus : most + rules.borrowing_limit;
  const std::int64_t kept = std::min({std::int64_t{gpus}, most, quotas.available(head.queue)});
  quotas.add(head.queue, std::max<std::int64_t>(0, kept));
}

bool ClusterQueuePass::preempt(QueueState& state, const Head& head, const CohortQuotas& quotas) {
  const ClusterQueue& rules = state.spec().cluster_queues[head.queue];
  const QueueJob& job = state.job(head.job);
  if (!rules.preempts() || !looks_for_victims(rules, job.gpus)) return false;
  VictimSearch search(state, head.job, quotas);
  const std::vector<std::uint32_t> victims = search.victims(preempted_);
  if (victims.empty()) return false;
  for (const std::uint32_t victim : victims) {
    state.evict(victim);
    preempted_.insert(victim);
  }
  state.start(head.job, place_now(state, head.job).value());
  return true;
}

bool ClusterQueuePass::cycle(QueueState& state) {
  CohortQuotas quotas = state.cohorts();  // with what is kept for those that were tried
  bool goes_on = false;
  for (const Head& head : heads(state)) {
    const int gpus = state.job(head.job).gpus;
    std::optional<Holding> where;
    if (gpus <= state.cohorts().available(head.queue)) where = place_now(state, head.job);
    if (where) {
      if (gpus > quotas.available(head.queue)) continue;  // the job stays first in its queue
      walks_[head.queue].pop();
      quotas.add(head.queue, gpus);
      state.start(head.job, *std::move(where));
      goes_on = true;
      continue;
    }
    if (preempt(state, head, quotas)) {
      look_anew(state);  // preempted jobs wait now, and others may fit
      return true;
    }
    keep_quota(state.spec().cluster_queues[head.queue], head, gpus, quotas);
    if (state.spec().cluster_queues[head.queue].strategy == QueueingStrategy::strict) continue;
    if (state.classes_are_alike()) {
      walks_[head.queue].pop_class();
    } else {
      walks_[head.queue].pop();
    }
    goes_on = true;
  }
  return goes_on;
}

void ClusterQueuePass::run(QueueState& state) {
  if (state.waiting().size() == 0) return;
  if (classes_.empty()) {
    classes_.resize(state.spec().cluster_queues.size());
    const auto& classes = state.waiting().classes();
    for (std::uint32_t c = 0; c < classes.size(); ++c) {
      classes_[state.cohorts().queue_of(classes[c].account)].push_back(c);
    }
  }
  preempted_.clear();
  look_anew(state);
  while (cycle(state)) {
  }
}

}  // namespace lockstep
