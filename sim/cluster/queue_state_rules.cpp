// What happens to jobs by rules beside those of the order: gates, priorities, preemption with a
// grace, advance reservations, rented nodes.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "sim/cluster/queue_state.hpp"

namespace lockstep {

/// A number that orders jobs before their priorities do, which stay below 2^32: steps of
/// preemption, a reservation, the place of the partition's tier.
double QueueState::precedence_of(std::uint32_t j) const {
  constexpr double kPriorities = 4294967296.0, kTiers = 16384;
  const QueueJob& of = job(j);
  const double reserved = reservation_of(j) != 0 ? 1 : 0;
  const double tier = precedences_[spec_->qos.size() + of.partition];
  return ((precedences_[of.qos] * 2 + reserved) * kTiers + tier) * kPriorities;
}

std::uint16_t QueueState::reservation_of(std::uint32_t j) const {
  const JobTerms* const terms = spec_->terms_of(j);
  return terms == nullptr ? std::uint16_t{0} : terms->reservation;
}

const NodeSet* QueueState::unreserved_for(std::uint32_t j, RunTime at, RunTime lasts,
                                          NodeSet& scratch) const {
  const NodeSet* const within = nodes_of(job(j).partition);
  scratch = reserved_.open_to(within, reservation_of(j), at, at + lasts, now_);
  return &scratch;
}

bool QueueState::waits_for_reservation(std::uint32_t j) const {
  const std::uint16_t reservation = reservation_of(j);
  if (reservation == 0) return false;
  const AdvanceReservation& own = reserved_.of(reservation);
  return own.announced > now_ || own.end <= now_ || (!own.flex && own.start > now_);
}

RunTime QueueState::next_rule() const {
  RunTime at = std::min(gates_.next_at(), next_reservation_);
  if (rented_.used()) at = std::min(at, rented_.next_at());
  if (!graces_.empty()) at = std::min(at, graces_.top().key);
  return at;
}

void QueueState::apply_rules() {
  while (!graces_.empty() && graces_.top().key <= now_) stop_preempted(graces_.top().index);
  if (next_reservation_ <= now_) end_reservations();
}

void QueueState::end_reservations() {
  std::vector<std::uint32_t> over;
  for (const auto& [end, j] : by_limit_) {
    if (reserved_.stops_at(reservation_of(j)) <= now_ && states_[j].ends > now_) over.push_back(j);
  }
  for (const SuspendedJobs::Job& of : suspended_.jobs()) {
    if (reserved_.stops_at(reservation_of(of.job)) <= now_) over.push_back(of.job);
  }
  for (const std::uint32_t j : over) stop(j);
  reserved_now_ = reserved_.reserved_at(now_);
  next_reservation_ = reserved_.next_change(now_);
}

void QueueState::reckon_priorities() {
  if (priorities_.next_at() > now_) return;
  for (const auto& [end, j] : by_limit_) priorities_.count(j, states_[j].active_since, now_);
  priorities_.reckon(now_);
  if (priority_.empty()) return;
  waiting_.sort_anew([&](std::uint32_t j) {
    priority_[j] = priorities_.priority_of(j, now_);
    return rank_of(j);
  });
}

void QueueState::reckon_shares() {
  if (!dominant_.used() || !dominant_.reckon()) return;
  waiting_.sort_anew([&](std::uint32_t j) { return rank_of(j); });
}

void QueueState::open_gates() {
  if (!gates_.used()) return;
  for (;;) {
    const std::vector<std::uint32_t> open = gates_.take_open(now_);
    for (const std::uint32_t j : open) {
      if (priorities_.used()) priorities_.set_eligible(j, now_);
      if (!priority_.empty()) priority_[j] = priorities_.priority_of(j, now_);
      wait(j);
    }
    const std::vector<std::uint32_t> hopeless = gates_.take_hopeless();
    for (const std::uint32_t j : hopeless) {
      if (states_[j].phase == JobPhase::kept) cancel(j);
    }
    if (open.empty() && hopeless.empty()) return;
  }
}

void QueueState::tell_of_end(std::uint32_t j, bool well) {
  // Trials that go on are submitted before the job's place in its campaign is free, so that they
  // come first.
  if (campaigns_.used()) {
    for (const std::uint32_t next : campaigns_.ended(j, well)) {
      going_on_.push_back(next);
      submit(next);
    }
  }
  if (gates_.used()) gates_.ended(j, well, now_);
  if (!campaigns_.used()) return;
  for (const std::uint32_t left_out : campaigns_.take_left_out()) {
    states_[left_out].phase = JobPhase::done;
    ++done_;
    gates_.ended(left_out, true, now_);
  }
}

void QueueState::cancel(std::uint32_t j) {
  JobState& s = states_[j];
  s.waited += now_ - s.pending_since;
  s.cancelled = true;
  s.ended = now_;
  close(j, false);
}

void QueueState::stop(std::uint32_t j) {
  JobState& s = states_[j];
  if (s.phase == JobPhase::suspended) {
    drop_suspended(j, SpanEnd::ended);
  } else {
    settle(j);
    let_go(j, SpanEnd::ended);
  }
  s.ended = now_;
  s.stopped = true;
  close(j, false);
}

bool QueueState::preempt(std::uint32_t j) {
  if (graces_.contains(j)) return false;
  if (suspends(j)) {
    suspend(j);
    return true;
  }
  const QueueJob& of = job(j);
  const bool by_qos = spec_->preemption.mode == PreemptionMode::qos;
  const RunTime grace = by_qos ? spec_->qos[of.qos].grace : spec_->partitions[of.partition].grace;
  if (grace == 0) {
    stop_preempted(j);
    return true;
  }
  graces_.set(j, now_ + grace);
  return false;
}

void QueueState::stop_preempted(std::uint32_t j) {
  if (!spec_->preemption.cancels && !spec_->qos[job(j).qos].cancels) return evict(j);
  JobState& s = states_[j];
  ++s.evictions;
  settle(j);
  const GpuTime lost(job(j).gpus, s.left_before - s.left);
  books_[static_cast<std::size_t>(QueueBucket::useful)] -= lost;
  books_[static_cast<std::size_t>(QueueBucket::lost)] += lost;
  let_go(j, SpanEnd::preempted);
  s.cancelled = true;
  s.ended = now_;
  close(j, false);
}

std::optional<Holding> QueueState::place(const FreeGpus& free, std::uint32_t j,
                                         const NodeSet* within) const {
  if (job(j).shape == 0) return placer_.place(free, job(j).gpus, within, link_loads());
  FreeGpus left = free;
  Holding out;
  for (const JobPart& part : spec_->shapes[job(j).shape]) {
    const NodeSet* nodes = nodes_of(part.partition);
    NodeSet both;
    if (nodes != nullptr && within != nullptr) {
      both = *within;
      both &= *nodes;
      nodes = &both;
    } else if (nodes == nullptr) {
      nodes = within;
    }
    const std::optional<Holding> where = placer_.place(left, part.gpus, nodes, link_loads());
    if (!where) return std::nullopt;
    left.take(*where);
    out.insert(out.end(), where->begin(), where->end());
  }
  return out;
}

std::int64_t QueueState::capped_gpus(std::int64_t free) const {
  std::int64_t most = -1;  // that could be held by the waiting jobs that draw least
  for (std::uint32_t c = 0; c < waiting_.classes().size(); ++c) {
    const JobClass& of = waiting_.classes()[c];
    if (waiting_.of(c).empty() || over_quota_beside_power(of) || !over_power(of)) continue;
    const double none = draws_with(of, 0).base_units();
    const double each = draws_with(of, 1).base_units() - none;
    // A hair more, so that a cap that is just met is not missed by rounding.
    const double has = std::floor((spec_->power_cap->base_units() - none) / each + 1e-6);
    if (each > 0) most = std::max(most, static_cast<std::int64_t>(std::max(0.0, has)));
  }
  return most < 0 ? 0 : std::max<std::int64_t>(0, free - most);
}

void QueueState::close_node(int node) {
  free_.close(node);
  drained_nodes_.add(node);
}

void QueueState::open_node(int node) {
  free_.open(node);
  drained_nodes_.remove(node);
}

int QueueState::evict_from(int node) {
  const std::vector<std::uint32_t> hit = jobs_on(node);
  for (const std::uint32_t j : hit) evict(j);
  return static_cast<int>(hit.size());
}

bool QueueState::suspends(std::uint32_t j) const {
  return spec_->preemption.suspends && !spec_->qos[job(j).qos].cancels;
}

void QueueState::suspend(std::uint32_t j) {
  JobState& s = states_[j];
  settle(j);
  Holding held = s.held;
  leave_gpus(j, SpanEnd::suspended);
  s.phase = JobPhase::suspended;
  s.suspended_at = now_;
  ++s.suspensions;
  suspended_.add(j, std::move(held));
}

void QueueState::resume_suspended() {
  if (!suspended_.any()) return;
  suspended_.claim(free_);
  for (const SuspendedJobs::Job& of : suspended_.take_whole()) resume(of);
}

/// Time in suspension counts neither as work nor towards its limit.
void QueueState::resume(const SuspendedJobs::Job& of) {
  const std::uint32_t j = of.job;
  JobState& s = states_[j];
  const RunTime gap = now_ - s.suspended_at;
  s.phase = JobPhase::running;
  s.suspended += gap;
  s.held = of.held;
  s.held_since = s.active_since = s.settled = s.width_since = now_;
  if (s.ready > s.suspended_at) s.ready += gap;
  s.ends += gap;
  count_held(j, 1);
  ends_.set(j, s.ends);
  by_limit_.emplace(limit_end(j), j);
  if (!usage_.used()) return;
  usage_.stopped(j);
  usage_.started(j, limit_end(j));
}

void QueueState::count_licenses(std::uint32_t j, int sign) {
  for (const LicenseNeed& need : spec_->license_sets[job(j).licenses]) {
    licenses_held_[need.license] += std::int64_t{sign} * need.count;
  }
}

/// Quotas and limits are of the cluster's GPUs: who bursts counts in none. Licences hold anywhere.
void QueueState::burst() {
  if (!rented_.used()) return;
  rented_.pass(now_);
  std::size_t left = rented_.overdue();
  if (left == 0) return;
  const auto& classes = waiting_.classes();
  const auto can = [&](std::uint32_t c) {
    return !over_licenses(classes[c]) && rented_.has_room(classes[c].gpus);
  };
  WaitingWalk walk(waiting_, can);
  while (!walk.empty() && left > 0) {
    if (!can(walk.front_class())) {
      walk.pop_class();
      continue;
    }
    const std::uint32_t j = walk.front().job;
    walk.pop();
    if (!rented_.is_overdue(j)) continue;
    --left;
    const RunTime restart = states_[j].first_start >= 0 ? spec_->preemption.restart : 0;
    const std::optional<RunTime> end = rented_.start(j, now_, states_[j].left, restart);
    if (end) start_rented(j, *end);
  }
}

void QueueState::start_rented(std::uint32_t j, RunTime end) {
  waiting_.remove(rank_of(j));
  JobState& s = states_[j];
  s.waited += now_ - s.pending_since;
  s.phase = JobPhase::rented;
  s.began = s.held_since = now_;
  if (s.first_start < 0) s.first_start = now_;
  s.ends = end;
  ends_.set(j, end);
  count_licenses(j, 1);
  if (gates_.used()) gates_.started(j, now_);
}

void QueueState::keep_rented_span(std::uint32_t j, SpanEnd how) {
  if (!keep_spans_) return;
  Holding held = rented_.held(j);
  for (HeldGpus& of : held) of.node += spec_->cluster.nodes;
  spans_.push_back({j, states_[j].held_since, now_, std::move(held), how});
}

void QueueState::finish_rented(std::uint32_t j) {
  JobState& s = states_[j];
  keep_rented_span(j, SpanEnd::ended);
  ends_.remove(j);
  s.slowed += rented_.finish(j, now_);
  s.left = s.left_least = 0;
  count_licenses(j, -1);
  close_well(j);
}

void QueueState::drop_suspended(std::uint32_t j, SpanEnd how) {
  if (keep_spans_) spans_.push_back({j, now_, now_, suspended_.find(j)->held, how});
  suspended_.remove(j, free_);
  states_[j].suspended += now_ - states_[j].suspended_at;
  if (usage_.used()) usage_.stopped(j);
  count_owned(j, -1);
}

}  // namespace lockstep
