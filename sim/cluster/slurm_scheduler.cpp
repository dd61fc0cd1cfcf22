#include "sim/cluster/slurm_scheduler.hpp"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "sim/cluster/preemption.hpp"

namespace lockstep {
namespace {

constexpr RunTime kNotDue = std::numeric_limits<RunTime>::max();
constexpr RunTime kSecond = 1'000'000'000;
constexpr RunTime kFirstWindow = 30 * kSecond;  // job_test.c, _will_run_test()

RunTime rounded_up(RunTime time, RunTime to) { return (time + to - 1) / to * to; }
RunTime rounded_down(RunTime time, RunTime to) { return time / to * to; }

NodeSet all_nodes(int nodes) {
  NodeSet out(nodes);
  for (int node = 0; node < nodes; ++node) out.add(node);
  return out;
}

NodeSet nodes_held(const Holding& holding, int nodes) {
  NodeSet out(nodes);
  for (const HeldGpus& held : holding) out.add(held.node);
  return out;
}

/// Running and suspended jobs by the ends of their limits: that of a suspended one stands still.
std::set<std::pair<RunTime, std::uint32_t>> ends_with_suspended(const QueueState& state,
                                                                const SuspendedJobs& suspended) {
  std::set<std::pair<RunTime, std::uint32_t>> out = state.by_limit();
  for (const SuspendedJobs::Job& of : suspended.jobs()) {
    out.emplace(std::max(state.limit_end(of.job), state.now()), of.job);
  }
  return out;
}

/// Limits are whole minutes.
RunTime limit_of(const QueueJob& job) { return rounded_up(job.limit, 60 * kSecond); }

}  // namespace

SlurmScheduler::SlurmScheduler(const SlurmCycles& cycles)
    : cycles_(cycles),
      next_main_(cycles.opens),
      next_event_(kNotDue),
      next_backfill_(cycles.bf_first.value_or(cycles.opens + cycles.bf_interval)),
      last_main_(cycles.opens - cycles.batch_sched_delay) {}

RunTime SlurmScheduler::next() const { return std::min({next_main_, next_event_, next_backfill_}); }

void SlurmScheduler::something_changed(RunTime now) {
  if (now < cycles_.opens) return;
  next_event_ = std::min(next_event_, std::max(now, last_main_ + cycles_.batch_sched_delay));
}

void SlurmScheduler::run(QueueState& state) {
  if (next_main_ <= state.now()) {
    run_main(state, std::numeric_limits<int>::max());
    next_main_ = state.now() + cycles_.sched_interval;
    next_event_ = kNotDue;
  } else if (next_event_ <= state.now()) {
    run_main(state, cycles_.default_queue_depth);
    next_event_ = kNotDue;
  }
  if (next_backfill_ <= state.now()) {
    run_backfill(state);
    next_backfill_ = state.now() + cycles_.bf_interval;
  }
}

NodeSet SlurmScheduler::open_nodes(const QueueState& state, std::uint32_t j, RunTime at) {
  NodeSet scratch;
  const NodeSet* const open = state.nodes_for(j, at, limit_of(state.job(j)), scratch);
  if (open == nullptr) return all_nodes(state.free().nodes());
  return *open;
}

bool SlurmScheduler::start_now(QueueState& state, std::uint32_t j, const NodeSet& usable) {
  auto where = state.place(state.free(), j, &usable);
  if (!where && state.spec().preemption.by_slurm() && preempt_for(state, j, &usable)) {
    where = state.place(state.free(), j, &usable);
  }
  if (!where) return false;
  state.start(j, *std::move(where));
  return true;
}

void SlurmScheduler::run_main(QueueState& state, int depth) {
  last_main_ = state.now();
  const auto& classes = state.waiting().classes();
  NodeSet left = all_nodes(state.free().nodes());
  std::vector<bool> closed(state.reserved().count() + std::size_t{1});  // reservations
  bool everybody = false;  // whether only jobs with a reservation may still start
  WaitingWalk walk(state.waiting(), [&](std::uint32_t c) { return !state.over_quota(classes[c]); });
  for (int tried = 0; !walk.empty() && tried < depth && left.count() > 0; ++tried) {
    const std::uint32_t j = walk.front().job;
    if (state.over_quota(classes[walk.front_class()])) {
      walk.pop_class();
      continue;
    }
    walk.pop();
    if (state.held_back(j)) continue;
    if (state.job(j).shape != 0) continue;  // heterogeneous jobs start in backfill alone
    const std::uint16_t reservation = state.reservation_of(j);
    if (closed[reservation] || (everybody && reservation == 0)) continue;
    const NodeSet* const partition = state.nodes_of(state.job(j).partition);
    NodeSet usable = left;
    bool kept_off = false;  // reservations of others keep it off nodes
    if (state.reserved().any()) {
      const NodeSet open = open_nodes(state, j, state.now());
      kept_off = open.count() < (partition == nullptr ? state.free().nodes() : partition->count());
      usable &= open;
    } else if (partition != nullptr) {
      usable &= *partition;
    }
    if (start_now(state, j, usable)) continue;
    if (reservation != 0) {
      closed[reservation] = true;
    } else if (kept_off) {
      continue;  // it does not block jobs behind it
    } else if (partition == nullptr) {
      if (!state.reserved().any()) return;
      everybody = true;
    } else {
      left -= *partition;  // no later job overtakes in the partition, nor on its nodes
    }
  }
}

void SlurmScheduler::run_backfill(QueueState& state) {
  const RunTime now = state.now();
  records_.assign(1, {now, now + cycles_.bf_window, all_nodes(state.free().nodes())});
  planned_tasks_.assign(state.spec().arrays.size(), 0);
  const auto& classes = state.waiting().classes();
  WaitingWalk walk(state.waiting(), [&](std::uint32_t c) { return !state.over_quota(classes[c]); });
  for (int tried = 0; !walk.empty() && tried < cycles_.bf_max_job_test; ++tried) {
    const std::uint32_t j = walk.front().job;
    if (state.over_quota(classes[walk.front_class()])) {
      walk.pop_class();
      continue;
    }
    walk.pop();
    const JobTerms* const terms = state.spec().terms_of(j);
    if (terms != nullptr && terms->array >= 0) {
      int& planned = planned_tasks_[static_cast<std::size_t>(terms->array)];
      if (planned++ >= cycles_.bf_max_job_array_resv) continue;
    }
    if (!state.over_time(j)) plan(state, j);
  }
}

SlurmScheduler::Usable SlurmScheduler::usable_between(RunTime start, RunTime end,
                                                      const NodeSet& partition) const {
  Usable out{.nodes = partition};
  const auto ends_by = [start](const Record& record) { return record.end <= start; };
  const auto first = std::ranges::partition_point(records_, ends_by);
  for (auto r = static_cast<std::size_t>(first - records_.begin()); r < records_.size(); ++r) {
    const Record& record = records_[r];
    if (r + 1 < records_.size() && out.later == 0 &&
        NodeSet::adds(partition, records_[r + 1].free, out.nodes, record.free)) {
      out.later = record.end;
    }
    if (record.begin > end) break;
    out.nodes &= record.free;
  }
  return out;
}

std::optional<SlurmScheduler::Plan> SlurmScheduler::will_run(const QueueState& state,
                                                             std::uint32_t j,
                                                             const NodeSet& usable) const {
  if (auto where = state.place(state.free(), j, &usable)) {
    return Plan{state.now(), *std::move(where)};
  }
  FreeGpus free = state.free();
  std::vector<std::uint32_t> gone;
  SuspendedJobs suspended = state.suspended();  // those that the job has to leave their GPUs
  if (state.spec().preemption.by_slurm()) {
    for (const SuspendedJobs::Job& of : state.suspended().jobs()) {
      if (may_preempt(state, j, of.job)) suspended.remove(of.job, free);
    }
    gone = preemption_candidates(state, j);
    for (const std::uint32_t of : gone) free.give(state.state(of).held);
    auto where = state.place(free, j, &usable);
    if (where) return Plan{state.now(), *std::move(where)};
    std::ranges::sort(gone);
  }
  const auto is_usable = [&](const HeldGpus& held) { return usable.has(held.node); };
  std::set<std::pair<RunTime, std::uint32_t>> with_suspended;
  if (suspended.any()) with_suspended = ends_with_suspended(state, suspended);
  const auto& ends = suspended.any() ? with_suspended : state.by_limit();
  std::optional<RunTime> first;  // from which the windows are counted
  RunTime window = kFirstWindow;
  for (auto end = ends.begin(); end != ends.end();) {
    std::optional<RunTime> last;
    // Whether the batch goes on is asked behind jobs with usable nodes alone.
    for (bool goes_on = true; goes_on && end != ends.end();) {
      const auto [at, running] = *end++;
      if (!gone.empty() && std::ranges::binary_search(gone, running)) continue;
      const SuspendedJobs::Job* const stays = suspended.find(running);
      const Holding& held = stays == nullptr ? state.state(running).held : stays->held;
      if (std::ranges::none_of(held, is_usable)) continue;
      if (!first) first = next_multiple(at, kFirstWindow);
      if (stays == nullptr) {
        free.give(held);
      } else {
        suspended.remove(running, free);
      }
      suspended.claim(free);
      last = at;
      goes_on = end != ends.end() && end->first <= *first + window;
    }
    if (!last) return std::nullopt;
    do {
      window *= 2;
    } while (end != ends.end() && end->first > *first + window);
    auto where = state.place(free, j, &usable);
    if (where) return Plan{std::max(*last, state.now() + kSecond), *std::move(where)};
  }
  return std::nullopt;
}

RunTime SlurmScheduler::next_multiple(RunTime time, RunTime of) const {
  return rounded_down(time + cycles_.epoch, of) + of - cycles_.epoch;
}

bool SlurmScheduler::is_reserved(const NodeSet& nodes, RunTime start, RunTime end) const {
  return std::ranges::any_of(records_, [&](const Record& record) {
    return record.end > start && record.begin < end && !nodes.within(record.free);
  });
}

void SlurmScheduler::split(RunTime at) {
  for (std::size_t r = 0; r < records_.size(); ++r) {
    if (records_[r].begin >= at || records_[r].end <= at) continue;
    Record second = records_[r];
    second.begin = records_[r].end = at;
    records_.insert(records_.begin() + static_cast<std::ptrdiff_t>(r) + 1, std::move(second));
    return;
  }
}

/// The beginning of its slot on the controller's clock.
RunTime SlurmScheduler::slot_of(RunTime time) const {
  return rounded_down(time + cycles_.epoch, cycles_.bf_resolution) - cycles_.epoch;
}

void SlurmScheduler::reserve(const Holding& where, RunTime start, RunTime end) {
  const RunTime from = std::max(start, records_.front().begin);
  const RunTime to = std::max(end, from + cycles_.bf_resolution);
  split(from);
  split(to);
  for (Record& record : records_) {
    if (record.begin < from || record.begin >= to) continue;
    for (const HeldGpus& held : where) record.free.remove(held.node);
  }
}

RunTime SlurmScheduler::first_try(const QueueState& state, std::uint32_t j) {
  const std::uint16_t reservation = state.reservation_of(j);
  if (reservation == 0 || state.reserved().of(reservation).flex) return state.now();
  return std::max(state.now(), state.reserved().of(reservation).start);
}

void SlurmScheduler::plan(QueueState& state, std::uint32_t j) {
  const RunTime now = state.now();
  const QueueJob& job = state.job(j);
  const bool no_reserve = state.spec().qos[job.qos].no_reserve;
  const RunTime limit = no_reserve ? 60 * kSecond : limit_of(job);
  RunTime start = first_try(state, j);
  NodeSet open = open_nodes(state, j, start);
  for (;;) {
    if (state.reserved().any()) open = open_nodes(state, j, start);
    Usable usable = usable_between(start, start + limit, open);
    if (state.reserved().any()) {
      const RunTime change = state.reserved().next_change(start);
      const bool is_near = change < now + cycles_.bf_window;
      if (is_near && (usable.later == 0 || change < usable.later)) usable.later = change;
    }
    std::optional<Plan> found = will_run(state, j, usable.nodes);
    if (!found) {
      if (usable.later == 0) return;
      start = usable.later;
      continue;
    }
    found->at = std::max(found->at, start);
    if (found->at <= now) {
      if (start_now(state, j, nodes_held(found->where, state.free().nodes()))) {
        ++backfilled_;
        return;
      }
      found->at = now + kSecond;  // graces run
    }
    if (usable.later > 0 && found->at > usable.later) {
      start = usable.later;
      continue;
    }
    if (no_reserve || found->at > now + cycles_.bf_window) return;
    const RunTime from = slot_of(found->at), to = slot_of(found->at + limit);
    // From `start` on the nodes are free: what a slot that began earlier holds is no reason for
    // another search.
    if (is_reserved(nodes_held(found->where, state.free().nodes()), std::max(from, start), to)) {
      start = found->at;
      continue;
    }
    reserve(found->where, from, to);
    return;
  }
}

}  // namespace lockstep
