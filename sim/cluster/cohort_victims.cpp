#include "sim/cluster/cohort_victims.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace lockstep {
namespace {

constexpr std::size_t kNoNode = CohortQuotas::kNoNode;

std::uint16_t queue_of(const QueueState& state, std::uint32_t j) {
  return state.cohorts().queue_of(state.job(j).account);
}

DispensableRank rank_of_running(const QueueState& state, std::uint32_t j) {
  return {state.job(j).priority, state.state(j).began, j};
}

}  // namespace

bool looks_for_victims(const QueueSpec& spec, const CohortQuotas& quotas, std::uint16_t queue,
                       int gpus) {
  const ClusterQueue& rules = spec.cluster_queues[queue];
  const bool by_shares = !spec.fair_sharing.empty() && rules.reclaim != ReclaimWithinCohort::never;
  return gpus <= rules.nominal || rules.borrow_within_cohort || by_shares ||
         quotas.reach_of(queue, gpus).below_root;
}

CohortVictims::CohortVictims(const QueueState& state, std::uint32_t j, CohortQuotas quotas)
    : state_(&state),
      job_(j),
      queue_(queue_of(state, j)),
      rules_(&state.spec().cluster_queues[queue_]),
      gpus_(state.job(j).gpus),
      quotas_(std::move(quotas)),
      free_(state.free()) {
  usable_ = state.nodes_for(j, state.now(), state.job(j).limit, scratch_);
}

std::vector<std::uint32_t> CohortVictims::find(const std::set<std::uint32_t>& spared) {
  return state_->spec().fair_sharing.empty() ? classic(spared) : by_shares(spared);
}

/// Those of a queue that the policies of the job's queue let go, the most dispensable first.
std::vector<DispensableRank> CohortVictims::of_queue(std::uint16_t queue,
                                                     const std::set<std::uint32_t>& spared) const {
  std::vector<DispensableRank> out;
  const std::int32_t priority = state_->job(job_).priority;
  const bool own = queue == queue_;
  const bool never = own ? rules_->within == WithinClusterQueue::never
                         : rules_->reclaim == ReclaimWithinCohort::never;
  if (never) return out;
  const bool any = !own && rules_->reclaim == ReclaimWithinCohort::any;
  const bool equals = own && rules_->within == WithinClusterQueue::lower_or_newer_equal_priority;
  for (const DispensableRank& of : state_->admitted(queue)) {
    if (!any && (of.priority > priority || (of.priority == priority && !equals))) break;
    const bool goes = any || of.priority < priority || of.job > job_;
    if (goes && !spared.contains(of.job)) out.push_back(of);
  }
  return out;
}

CohortVictims::Kind CohortVictims::kind_of(std::uint32_t of, bool advantage) const {
  if (advantage) return Kind::reclaimed;
  if (!rules_->borrow_within_cohort) return Kind::if_not_borrows;
  const std::int32_t priority = state_->job(of).priority;
  const bool above = priority >= state_->job(job_).priority ||
                     (rules_->max_priority_threshold && priority > *rules_->max_priority_threshold);
  return above ? Kind::if_not_borrows : Kind::any_time;
}

void CohortVictims::collect_below(std::size_t cohort, std::size_t common, std::size_t skipped,
                                  bool advantage, const std::set<std::uint32_t>& spared,
                                  std::vector<DispensableRank>& ranks,
                                  std::map<std::uint32_t, Candidate>& out) const {
  for (const std::size_t child : quotas_.children_of(cohort)) {
    if (child == skipped || child == queue_ || !quotas_.borrows(child)) continue;
    if (!quotas_.is_queue(child)) {
      collect_below(child, common, skipped, advantage, spared, ranks, out);
      continue;
    }
    const auto queue = static_cast<std::uint16_t>(child);
    for (const DispensableRank& of : of_queue(queue, spared)) {
      ranks.push_back(of);
      out.insert({of.job, {of.job, queue, common, kind_of(of.job, advantage)}});
    }
  }
}

/// Whether the candidate's queue, and all between it and the common cohort, hold others' GPUs.
bool CohortVictims::still_borrows(const Candidate& of) const {
  for (std::size_t n = of.queue; n != of.common; n = quotas_.parent_of(n)) {
    if (!quotas_.borrows(n)) return false;
  }
  return true;
}

void CohortVictims::take_away(std::uint32_t of) {
  free_.give(state_->state(of).held);
  quotas_.add(queue_of(*state_, of), -state_->state(of).width);
}

void CohortVictims::give_back(std::uint32_t of) {
  free_.take(state_->state(of).held);
  quotas_.add(queue_of(*state_, of), state_->state(of).width);
}

bool CohortVictims::fits(bool may_borrow) const {
  if (counted_) {
    CohortQuotas without = quotas_;
    without.add(queue_, -gpus_);
    if (gpus_ > without.available(queue_)) return false;
  } else if (gpus_ > quotas_.available(queue_) || (!may_borrow && quotas_.borrows(queue_, gpus_))) {
    return false;
  }
  return state_->place(free_, job_, usable_).has_value();
}

std::vector<std::uint32_t> CohortVictims::spare(const std::vector<std::uint32_t>& gone, bool enough,
                                                bool may_borrow) {
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

std::vector<std::uint32_t> CohortVictims::try_in_order(const std::vector<Candidate>& all,
                                                       bool may_borrow) {
  std::vector<std::uint32_t> gone;
  bool enough = false;
  for (const Candidate& next : all) {
    if (next.kind == Kind::if_not_borrows && may_borrow) continue;
    if (next.kind != Kind::own && !still_borrows(next)) continue;
    take_away(next.job);
    gone.push_back(next.job);
    enough = fits(may_borrow);
    if (enough) break;
  }
  return spare(gone, enough, may_borrow);
}

std::vector<std::uint32_t> CohortVictims::classic(const std::set<std::uint32_t>& spared) {
  std::vector<DispensableRank> reclaimed, others;
  std::map<std::uint32_t, Candidate> known;
  // Up the tree: as soon as a part of it has room for the job, what is outside of it gives way.
  bool advantage = !quotas_.borrows(queue_, gpus_);
  std::int64_t remaining = std::max<std::int64_t>(0, gpus_ - quotas_.own_left(queue_));
  std::size_t before = kNoNode;
  for (std::size_t n = quotas_.parent_of(queue_); n != kNoNode; n = quotas_.parent_of(n)) {
    collect_below(n, n, before, advantage, spared, advantage ? reclaimed : others, known);
    advantage = advantage || !quotas_.borrows(n, remaining);
    remaining = std::max<std::int64_t>(0, remaining - quotas_.own_left(n));
    before = n;
  }
  std::ranges::sort(reclaimed, std::less<DispensableRank>{});
  std::ranges::sort(others, std::less<DispensableRank>{});
  std::vector<Candidate> all;
  for (const auto* list : {&reclaimed, &others}) {
    for (const DispensableRank& of : *list) all.push_back(known.at(of.job));
  }
  for (const DispensableRank& of : of_queue(queue_, spared)) {
    all.push_back({of.job, queue_, kNoNode, Kind::own});
  }
  if (all.empty()) return {};
  const bool forbidden = !rules_->borrow_within_cohort;
  const bool nobody_else = reclaimed.empty() && others.empty();
  const bool under_nominal = quotas_.held(queue_) < rules_->nominal;
  if (nobody_else || (forbidden && !under_nominal)) return try_in_order(all, true);
  const bool borrows_first = !(forbidden && reclaimed.empty());
  std::vector<std::uint32_t> out = try_in_order(all, borrows_first);
  return out.empty() ? try_in_order(all, !borrows_first) : out;
}

bool CohortVictims::before(std::uint32_t a, std::uint32_t b) const {
  const bool own_a = queue_of(*state_, a) == queue_, own_b = queue_of(*state_, b) == queue_;
  if (own_a != own_b) return own_b;
  return rank_of_running(*state_, a) < rank_of_running(*state_, b);
}

std::size_t CohortVictims::next_target(const Left& left, std::set<std::size_t>& pruned) const {
  const auto has_job = [&](std::size_t queue) {
    const auto of = left.find(queue);
    return of != left.end() && !of->second.empty();
  };
  std::set<std::size_t> path;  // of the job's own cohorts
  for (std::size_t n = queue_; n != kNoNode; n = quotas_.parent_of(n)) path.insert(n);
  const std::size_t root = quotas_.root_of(queue_);
  if (root == queue_) return has_job(queue_) ? queue_ : kNoNode;
  std::size_t cohort = root;
  while (!pruned.contains(root)) {
    std::size_t queue = kNoNode, below = kNoNode;
    FairShare of_queue, of_below;
    for (const std::size_t child : quotas_.children_of(cohort)) {
      if (pruned.contains(child)) continue;
      const FairShare share = quotas_.share_of(child);
      const bool at_rest = share == FairShare{} && !path.contains(child);
      if (at_rest || (quotas_.is_queue(child) && !has_job(child))) {
        pruned.insert(child);
      } else if (!quotas_.is_queue(child)) {
        if (below == kNoNode || share >= of_below) of_below = share, below = child;
      } else if (queue == kNoNode || share > of_queue ||
                 (share == of_queue && before(left.at(child).front(), left.at(queue).front()))) {
        of_queue = share, queue = child;
      }
    }
    if (below == kNoNode && queue == kNoNode) {
      pruned.insert(cohort);
      cohort = root;
    } else if (below != kNoNode && (queue == kNoNode || of_below >= of_queue)) {
      cohort = below;
    } else {
      return queue;
    }
  }
  return kNoNode;
}

std::pair<std::size_t, std::size_t> CohortVictims::below_common(std::size_t target) const {
  std::set<std::size_t> above;
  for (std::size_t n = quotas_.parent_of(queue_); n != kNoNode; n = quotas_.parent_of(n)) {
    above.insert(n);
  }
  std::size_t theirs = target;
  while (!above.contains(quotas_.parent_of(theirs))) theirs = quotas_.parent_of(theirs);
  std::size_t ours = queue_;
  while (quotas_.parent_of(ours) != quotas_.parent_of(theirs)) ours = quotas_.parent_of(ours);
  return {ours, theirs};
}

/// Whether a job of the target may go: that moves no imbalance to the other side.
bool CohortVictims::allowed(FairStrategy strategy, std::size_t target, std::uint32_t of) {
  if (!quotas_.borrows(queue_)) return true;  // with the job: what is its own
  const auto [ours, theirs] = below_common(target);
  const FairShare ours_new = quotas_.share_of(ours);
  if (strategy == FairStrategy::less_than_initial_share) return ours_new < quotas_.share_of(theirs);
  const auto queue = static_cast<std::uint16_t>(target);
  quotas_.add(queue, -state_->state(of).width);
  const FairShare theirs_new = quotas_.share_of(theirs);
  quotas_.add(queue, state_->state(of).width);
  return ours_new <= theirs_new;
}

std::vector<std::uint32_t> CohortVictims::by_shares(const std::set<std::uint32_t>& spared) {
  Left left;
  const std::size_t root = quotas_.root_of(queue_);
  const auto queues = static_cast<std::uint16_t>(state_->spec().cluster_queues.size());
  for (std::uint16_t q = 0; q < queues; ++q) {
    const bool is_candidate = q == queue_ || (quotas_.root_of(q) == root && quotas_.borrows(q));
    if (!is_candidate) continue;
    for (const DispensableRank& of : of_queue(q, spared)) left[q].push_back(of.job);
  }
  if (left.empty()) return {};
  const std::vector<FairStrategy>& strategies = state_->spec().fair_sharing;
  quotas_.add(queue_, gpus_);
  counted_ = true;
  std::vector<std::uint32_t> gone;
  Left retry;
  bool enough = false;
  const auto take = [&](std::uint32_t victim) {
    take_away(victim);
    gone.push_back(victim);
    enough = fits(true);
  };
  std::set<std::size_t> pruned;
  while (!enough) {
    const std::size_t target = next_target(left, pruned);
    if (target == kNoNode) break;
    std::vector<std::uint32_t>& jobs = left.at(target);
    // Shares change with each that goes: then another queue may have the highest.
    for (bool went = false; !went && !jobs.empty();) {
      const std::uint32_t next = jobs.front();
      jobs.erase(jobs.begin());
      went = target == queue_ || allowed(strategies[0], target, next);
      if (went) {
        take(next);
      } else {
        retry[target].push_back(next);
      }
    }
  }
  pruned.clear();
  while (!enough && strategies.size() > 1) {
    const std::size_t target = next_target(retry, pruned);
    if (target == kNoNode) break;
    const std::uint32_t next = retry.at(target).front();
    if (allowed(strategies[1], target, next)) take(next);
    pruned.insert(target);  // of a queue one at most
  }
  return spare(gone, enough, true);
}

}  // namespace lockstep
