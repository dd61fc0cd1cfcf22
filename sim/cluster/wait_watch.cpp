#include "sim/cluster/wait_watch.hpp"

namespace lockstep {
namespace {

/// GPUs that are free, and those in repair, on nodes that the job may have.
struct Supply {
  std::int64_t free = 0, broken = 0;
};
Supply supply_for(const QueueState& state, const NodeSet* within) {
  Supply out;
  const FreeGpus& free = state.free();
  for (int node = 0; node < free.nodes(); ++node) {
    if (within != nullptr && !within->has(node)) continue;
    out.free += free.on(node);
    out.broken += free.is_open(node) ? 0 : free.gpus_per_node();
  }
  return out;
}

/// It fits, and yet it waits.
WaitReason held_back(QueueAdmission admission) {
  switch (admission) {
    case QueueAdmission::easy:
    case QueueAdmission::conservative:
      return WaitReason::reservation;
    case QueueAdmission::slurm:
      return WaitReason::scheduler;
    case QueueAdmission::strict:
    case QueueAdmission::best_effort:
      break;
  }
  return WaitReason::order;
}

WaitReason reason_of(const QueueState& state, std::uint32_t j, const Supply& supply) {
  const QueueJob& job = state.job(j);
  if (state.over_quota(state.waiting().classes()[state.waiting().class_of(j)])) {
    return WaitReason::quota;
  }
  const NodeSet* const within = state.nodes_of(job.partition);
  if (state.placer().place(state.free(), job.gpus, within)) {
    return held_back(state.spec().admission);
  }
  if (supply.free >= job.gpus) return WaitReason::fragmentation;
  return supply.free + supply.broken >= job.gpus ? WaitReason::broken : WaitReason::busy;
}

/// Counts who waits before the job, and finds the first of them.
void add_queue_before(const QueueState& state, std::uint32_t j, WaitSpan& span) {
  const JobRank own = state.rank_of(j);
  std::optional<JobRank> first;
  for (std::uint32_t c = 0; c < state.waiting().classes().size(); ++c) {
    for (const JobRank& rank : state.waiting().of(c)) {
      if (!(rank < own)) break;
      ++span.before;
      if (!first || rank < *first) first = rank;
    }
  }
  if (first) span.first = first->job;
}

}  // namespace

void WaitWatch::note(const QueueState& state) {
  const RunTime now = state.now();
  if (open_) spans_.back().end = now;
  const bool waits = state.state(job_).phase == JobPhase::pending;
  if (!waits) {
    open_ = false;
    return;
  }
  const Supply supply = supply_for(state, state.nodes_of(state.job(job_).partition));
  const WaitReason reason = reason_of(state, job_, supply);
  if (open_ && spans_.back().reason == reason) return;
  WaitSpan span{.begin = now, .end = now, .reason = reason, .free_gpus = supply.free};
  add_queue_before(state, job_, span);
  if (open_ && spans_.back().begin == now) spans_.pop_back();  // it lasted no time
  open_ = true;
  const bool goes_on =
      !spans_.empty() && spans_.back().end == now && spans_.back().reason == reason;
  if (!goes_on) spans_.push_back(span);
}

}  // namespace lockstep
