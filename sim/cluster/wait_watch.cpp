#include "sim/cluster/wait_watch.hpp"

#include "sim/scenario/queue_policy_extension.hpp"

namespace lockstep {
namespace {

/// GPUs that are free, those in repair, and free ones of nodes that take no jobs, on nodes that the
/// job may have.
struct Supply {
  std::int64_t free = 0, broken = 0, drained = 0;
};
Supply supply_for(const QueueState& state, const NodeSet* within) {
  Supply out;
  const FreeGpus& free = state.free();
  for (int node = 0; node < free.nodes(); ++node) {
    if (within != nullptr && !within->has(node)) continue;
    out.free += free.on(node);
    if (state.is_drained(node)) {
      out.drained += free.not_held_on(node);
    } else if (!free.is_open(node)) {
      out.broken += free.gpus_per_node();
    }
  }
  return out;
}

/// Why a job waits that fits.
WaitReason held_back(QueueAdmission admission) {
  if (is_extension(admission)) return WaitReason::scheduler;
  switch (admission) {
    case QueueAdmission::easy:
    case QueueAdmission::conservative:
      return WaitReason::reservation;
    case QueueAdmission::slurm:
      return WaitReason::scheduler;
    case QueueAdmission::strict:
    case QueueAdmission::best_effort:
    case QueueAdmission::kueue:
      break;
  }
  return WaitReason::order;
}

/// Why a job is not considered yet.
WaitReason kept_by(const QueueState& state, std::uint32_t j) {
  switch (state.gates().reason_of(j, state.now())) {
    case GateReason::held:
      return WaitReason::held;
    case GateReason::limit:
      return WaitReason::limit;
    case GateReason::dependency:
      return WaitReason::dependency;
    case GateReason::array:
      return WaitReason::array_limit;
    case GateReason::begin:
    case GateReason::open:
      break;
  }
  return WaitReason::begin_time;
}

WaitReason reason_of(const QueueState& state, std::uint32_t j, const NodeSet* within,
                     const Supply& supply) {
  if (state.state(j).phase == JobPhase::suspended) return WaitReason::suspended;
  if (state.state(j).phase == JobPhase::kept) return kept_by(state, j);
  const QueueJob& job = state.job(j);
  const JobClass& of = state.waiting().classes()[state.waiting().class_of(j)];
  if (state.over_limit(of) || state.over_time(j)) return WaitReason::limit;
  if (state.over_licenses(of)) return WaitReason::licenses;
  if (state.over_quota_beside_power(of)) return WaitReason::quota;
  if (state.held_back(j)) return WaitReason::advance_reservation;
  if (state.place(state.free(), j, within)) {
    return state.over_power(of) ? WaitReason::power : held_back(state.spec().admission);
  }
  if (state.reserved().any() && state.place(state.free(), j, state.nodes_of(job.partition))) {
    return WaitReason::advance_reservation;
  }
  if (supply.free >= job.gpus) return WaitReason::fragmentation;
  if (supply.free + supply.drained >= job.gpus) return WaitReason::drained;
  const std::int64_t lost = supply.drained + supply.broken;
  return supply.free + lost >= job.gpus ? WaitReason::broken : WaitReason::busy;
}

/// Counts the jobs that wait before this one, and finds the first of them.
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
  const JobPhase phase = state.state(job_).phase;
  const bool waits = phase == JobPhase::pending || phase == JobPhase::kept;
  if (!waits && phase != JobPhase::suspended) {
    open_ = false;
    return;
  }
  NodeSet scratch;
  const NodeSet* const within = state.nodes_for(job_, now, state.job(job_).limit, scratch);
  const Supply supply = supply_for(state, within);
  const WaitReason reason = reason_of(state, job_, within, supply);
  if (open_ && spans_.back().reason == reason) return;
  WaitSpan span{.begin = now, .end = now, .reason = reason, .free_gpus = supply.free};
  if (phase == JobPhase::pending) add_queue_before(state, job_, span);
  if (open_ && spans_.back().begin == now) spans_.pop_back();  // an empty span
  open_ = true;
  const bool goes_on =
      !spans_.empty() && spans_.back().end == now && spans_.back().reason == reason;
  if (!goes_on) spans_.push_back(span);
}

}  // namespace lockstep
