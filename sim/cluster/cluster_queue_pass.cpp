#include "sim/cluster/cluster_queue_pass.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "sim/cluster/cohort_victims.hpp"

namespace lockstep {
namespace {

std::optional<Holding> place_now(const QueueState& state, std::uint32_t j) {
  const QueueJob& job = state.job(j);
  NodeSet scratch;
  return state.place(state.free(), j, state.nodes_for(j, state.now(), job.limit, scratch));
}

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
    const CohortQuotas::Reach reach = state.cohorts().reach_of(queue, state.job(j).gpus);
    out.push_back({queue, j, reach.height});
  }
  std::ranges::sort(out, {}, [&](const Head& of) {
    return std::tuple(of.reach, -std::int64_t{state.job(of.job).priority}, of.job);
  });
  return out;
}

namespace {

/// A job in the contest for the next turn, with the shares that its start would leave.
struct Contender {
  std::size_t head;                                       ///< its place among the heads
  std::vector<std::pair<std::size_t, FairShare>> shares;  ///< of its queue and the cohorts above

  [[nodiscard]] FairShare share_of(std::size_t node) const {
    const auto of = std::ranges::find(shares, node, &std::pair<std::size_t, FairShare>::first);
    return of == shares.end() ? FairShare{} : of->second;
  }
};

/// Who wins below a node of the tree; null: nobody is in the contest there.
const Contender* winner_of(const CohortQuotas& quotas, std::size_t node,
                           const std::map<std::size_t, Contender>& by_queue,
                           const std::function<bool(std::size_t, std::size_t)>& earlier) {
  if (quotas.is_queue(node)) {
    const auto of = by_queue.find(node);
    return of == by_queue.end() ? nullptr : &of->second;
  }
  const Contender* best = nullptr;
  FairShare least;
  for (const std::size_t child : quotas.children_of(node)) {
    const Contender* const next = winner_of(quotas, child, by_queue, earlier);
    if (next == nullptr) continue;
    const FairShare share = next->share_of(child);
    const bool first =
        best == nullptr || share < least || (share == least && earlier(next->head, best->head));
    if (first) best = next, least = share;
  }
  return best;
}

}  // namespace

ClusterQueuePass::Head ClusterQueuePass::take_next(const QueueState& state, std::vector<Head>& left,
                                                   const CohortQuotas& quotas) {
  std::size_t next = 0;
  if (!state.spec().fair_sharing.empty()) {
    const std::size_t root = quotas.root_of(left.front().queue);
    std::map<std::size_t, Contender> by_queue;
    CohortQuotas tried = quotas;
    for (std::size_t h = 0; h < left.size(); ++h) {
      const Head& head = left[h];
      if (quotas.root_of(head.queue) != root) continue;
      Contender& of = by_queue[head.queue];
      of.head = h;
      tried.add(head.queue, state.job(head.job).gpus);
      for (std::size_t n = head.queue; n != CohortQuotas::kNoNode; n = tried.parent_of(n)) {
        of.shares.emplace_back(n, tried.share_of(n));
      }
      tried.add(head.queue, -state.job(head.job).gpus);
    }
    const auto earlier = [&](std::size_t a, std::size_t b) {
      const auto key = [&](std::size_t h) {
        return std::pair(-std::int64_t{state.job(left[h].job).priority}, left[h].job);
      };
      return key(a) < key(b);
    };
    next = winner_of(quotas, root, by_queue, earlier)->head;
  }
  const Head out = left[next];
  left.erase(left.begin() + static_cast<std::ptrdiff_t>(next));
  return out;
}

void ClusterQueuePass::keep_quota(const QueueSpec& spec, const Head& head, int gpus,
                                  CohortQuotas& quotas) {
  const ClusterQueue& rules = spec.cluster_queues[head.queue];
  const bool looks = looks_for_victims(spec, quotas, head.queue, gpus);
  if (!looks || rules.reclaim == ReclaimWithinCohort::any) return;
  std::int64_t most = rules.nominal - quotas.held(head.queue);
  if (head.reach > 0) most = rules.borrowing_limit < 0 ? gpus : most + rules.borrowing_limit;
  const std::int64_t kept = std::min({std::int64_t{gpus}, most, quotas.available(head.queue)});
  quotas.add(head.queue, std::max<std::int64_t>(0, kept));
}

bool ClusterQueuePass::preempt(QueueState& state, const Head& head, const CohortQuotas& quotas) {
  const ClusterQueue& rules = state.spec().cluster_queues[head.queue];
  const QueueJob& job = state.job(head.job);
  if (!rules.preempts() || !looks_for_victims(state.spec(), quotas, head.queue, job.gpus)) {
    return false;
  }
  CohortVictims search(state, head.job, quotas);
  const std::vector<std::uint32_t> victims = search.find(preempted_);
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
  std::vector<Head> left = heads(state);
  while (!left.empty()) {
    const Head head = take_next(state, left, quotas);
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
    keep_quota(state.spec(), head, gpus, quotas);
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
