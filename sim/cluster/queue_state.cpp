#include "sim/cluster/queue_state.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <utility>

#include "sim/cluster/service_order.hpp"
#include "sim/scenario/queue_order_extension.hpp"

namespace lockstep {
namespace {

constexpr RunTime kNever = std::numeric_limits<RunTime>::max();
constexpr std::int64_t kNoQuota = std::numeric_limits<std::int64_t>::max();

std::vector<std::int64_t> quotas_of(const std::vector<QueueQuota>& quotas, std::size_t count) {
  std::vector<std::int64_t> out(count, kNoQuota);
  for (const QueueQuota& quota : quotas) out[quota.of] = quota.gpus;
  return out;
}

std::vector<NodeSet> partition_nodes(const QueueSpec& spec) {
  std::vector<NodeSet> out;
  for (const QueuePartition& partition : spec.partitions) {
    NodeSet nodes(partition.nodes.empty() ? 0 : spec.cluster.nodes);
    for (const int node : partition.nodes) nodes.add(node);
    out.push_back(std::move(nodes));
  }
  return out;
}

/// How many steps of preemption are below a quality of service, then the places of partitions'
/// tiers; empty where all jobs are alike in both, and no reservations are known.
std::vector<double> precedences_of(const QueueSpec& spec) {
  const bool by_qos = spec.preemption.mode == PreemptionMode::qos;
  const auto is_plain = [](const QueuePartition& of) { return of.tier == 1; };
  if (!by_qos && spec.reservations.empty() && std::ranges::all_of(spec.partitions, is_plain)) {
    return {};
  }
  std::vector<double> out(spec.qos.size());
  for (std::size_t round = 0; by_qos && round < std::min<std::size_t>(spec.qos.size(), 8);
       ++round) {
    for (std::size_t q = 0; q < spec.qos.size(); ++q) {
      for (const std::uint16_t below : spec.qos[q].preempts) {
        if (below != q) out[q] = std::min(7.0, std::max(out[q], out[below] + 1));
      }
    }
  }
  std::vector<int> tiers;
  tiers.reserve(spec.partitions.size());
  for (const QueuePartition& of : spec.partitions) tiers.push_back(of.tier);
  std::ranges::sort(tiers);
  const auto rest = std::ranges::unique(tiers);
  tiers.erase(rest.begin(), rest.end());
  for (const QueuePartition& of : spec.partitions) {
    out.push_back(static_cast<double>(std::ranges::lower_bound(tiers, of.tier) - tiers.begin()));
  }
  return out;
}

}  // namespace

QueueState::QueueState(const QueueSpec& spec, bool keep_spans)
    : spec_(&spec),
      keep_spans_(keep_spans),
      free_(spec.cluster.nodes, spec.cluster.node.gpus,
            spec.placement.across == AcrossNodes::packed ||
                    spec.placement.across == AcrossNodes::least_contended
                ? spec.placement.leaf_nodes
                : 0),
      placer_(spec.placement, spec.cluster.nodes, spec.cluster.node.gpus, spec.jobs),
      partitions_(partition_nodes(spec)),
      states_(spec.jobs.size()),
      waiting_(spec),
      evictable_(waiting_.classes().size()),
      user_gpus_(spec.users.size()),
      account_gpus_(spec.accounts.size()),
      user_quota_(quotas_of(spec.user_quotas, spec.users.size())),
      account_quota_(quotas_of(spec.account_quotas, spec.accounts.size())),
      account_time_(spec.accounts.size()),
      licenses_held_(spec.licenses.size()),
      license_time_(spec.licenses.size()),
      tree_(spec),
      priorities_(spec, tree_),
      usage_(spec, tree_),
      gates_(spec),
      campaigns_(spec),
      reserved_(spec),
      next_reservation_(reserved_.any() ? 0 : kNever),
      rented_(spec),
      dominant_(spec),
      precedences_(precedences_of(spec)),
      cohorts_(spec),
      admitted_(spec.cluster_queues.size()) {
  if (spec.health.any()) drained_nodes_ = NodeSet(spec.cluster.nodes);
  if (spec.power) draws_.emplace(spec);
  ends_.fit(spec.jobs.size());
  levels_.fit(spec.jobs.size());
  exempt_.fit(spec.jobs.size());
  for (std::size_t j = 0; j < states_.size(); ++j)
    states_[j].left = states_[j].left_least = spec.jobs[j].runs;
  if (spec.order == QueueOrder::themis) fairness_.resize(spec.jobs.size(), 1.0);
  if (spec.preemption.by_slurm()) graces_.fit(spec.jobs.size());
  if (spec.order == QueueOrder::gittins) gittins_ = gittins_of_levels(spec);
  if (spec.order == QueueOrder::qssf) predicted_ = predicted_services(spec);
  if (is_extension(spec.order)) predicted_ = added_keys(spec);
  if (spec.order == QueueOrder::multifactor) priority_.resize(spec.jobs.size());
}

const NodeSet* QueueState::nodes_of(std::uint16_t partition) const {
  return spec_->partitions[partition].nodes.empty() ? nullptr : &partitions_[partition];
}

bool QueueState::over_quota(const JobClass& of) const {
  return over_owner_quota(of) || over_cohort(of);
}

bool QueueState::over_owner_quota(const JobClass& of) const {
  return over_owner_gpus(of) || over_licenses(of) || over_power(of);
}

bool QueueState::over_owner_gpus(const JobClass& of) const {
  return user_gpus_[of.user] + of.gpus > user_quota_[of.user] ||
         account_gpus_[of.account] + of.gpus > account_quota_[of.account] || over_limit(of);
}

bool QueueState::over_cohort(const JobClass& of) const {
  return cohorts_.used() && of.gpus > cohorts_.available(cohorts_.queue_of(of.account));
}

bool QueueState::lacks_only_licenses(const JobClass& of) const {
  return over_licenses(of) && !over_owner_gpus(of) && !over_cohort(of) && !over_power(of);
}

bool QueueState::over_licenses(const JobClass& of) const {
  return std::ranges::any_of(spec_->license_sets[of.licenses], [&](const LicenseNeed& need) {
    return licenses_held_[need.license] + need.count > spec_->licenses[need.license].count;
  });
}

RunTime QueueState::attained(std::uint32_t j) const {
  const JobState& s = states_[j];
  return s.attained + (s.phase == JobPhase::running ? now_ - s.active_since : 0);
}

std::size_t QueueState::level_of(std::uint32_t j) const {
  const RunTime service = attained(j) * job(j).gpus;
  const auto above = std::ranges::upper_bound(spec_->levels, service);
  return static_cast<std::size_t>(above - spec_->levels.begin());
}

JobRank QueueState::rank_of(std::uint32_t j) const {
  JobRank rank = place_of(j);
  if (spec_->admission == QueueAdmission::slurm) {
    constexpr RunTime kSecond = 1'000'000'000;
    rank.since = static_cast<std::uint32_t>(states_[j].pending_since / kSecond);
  } else if (campaigns_.used()) {
    rank.since = campaigns_.turn_of(j);  // jobs are not numbered by their submission
  }
  return rank;
}

JobRank QueueState::place_of(std::uint32_t j) const {
  const JobState& s = states_[j];
  const RunTime left = s.phase == JobPhase::running ? s.ends - now_ : s.left;
  switch (spec_->order) {
    case QueueOrder::fifo:
      return {-precedence(j), j};
    case QueueOrder::sjf:
      return {static_cast<double>(job(j).runs), j};
    case QueueOrder::srtf:
      return {static_cast<double>(left), j};
    case QueueOrder::srsf:
      return {static_cast<double>(left) * job(j).gpus, j};
    case QueueOrder::las:
      return {static_cast<double>(level_of(j)), j};
    case QueueOrder::priority:
      return {-static_cast<double>(job(j).priority) - precedence(j), j};
    case QueueOrder::multifactor:
      return {-priority_[j] - precedence(j), j};
    case QueueOrder::gittins:
      return {-gittins_[level_of(j)], j};
    case QueueOrder::qssf:
      return {predicted_[j], j};
    case QueueOrder::drf:
      return {dominant_.of(job(j).account), j};
    case QueueOrder::themis:
      return {-fairness_[j], j};
  }
  assert(is_extension(spec_->order));
  return {predicted_[j], j};
}

JobRank QueueState::lasting_rank(std::uint32_t j) const {
  const bool by_end = spec_->order == QueueOrder::srtf || spec_->order == QueueOrder::srsf;
  return by_end ? JobRank{static_cast<double>(states_[j].ends), j} : rank_of(j);
}

RunTime QueueState::next_level() const { return levels_.empty() ? kNever : levels_.top().key; }

void QueueState::foresee_level(std::uint32_t j) {
  const std::size_t level = level_of(j);
  if (level == spec_->levels.size()) return;
  const JobState& s = states_[j];
  const RunTime gpus = job(j).gpus;
  const RunTime needs = (spec_->levels[level] - s.attained * gpus + gpus - 1) / gpus;
  levels_.set(j, s.began + needs);
}

void QueueState::fall_levels() {
  while (next_level() <= now_) {
    const std::uint32_t j = levels_.pop().index;
    std::set<JobRank>& of_class = evictable_[waiting_.class_of(j)];
    const auto is_it = [j](const JobRank& rank) { return rank.job == j; };
    if (std::erase_if(of_class, is_it) > 0) of_class.insert(lasting_rank(j));
    foresee_level(j);
  }
}

void QueueState::end_exemptions() {
  while (!exempt_.empty() && exempt_.top().key <= now_) {
    const std::uint32_t j = exempt_.pop().index;
    evictable_[waiting_.class_of(j)].insert(lasting_rank(j));
  }
}

void QueueState::advance(RunTime to) {
  assert(to >= now_);
  const RunTime passed = to - now_;
  std::int64_t free = free_.total();
  if (reserved_now_.count() > 0) {
    std::int64_t set_aside = 0;
    for (int node = reserved_now_.first(); node >= 0; node = reserved_now_.first(node + 1)) {
      set_aside += free_.on(node);
    }
    count(QueueBucket::reserved, set_aside, passed);
    free -= set_aside;
  }
  if (spec_->power_cap && waiting_.size() > 0) {
    const std::int64_t capped = capped_gpus(free);
    count(QueueBucket::capped, capped, passed);
    free -= capped;
  }
  count(waiting_.size() > 0 ? QueueBucket::blocked : QueueBucket::idle, free, passed);
  count(QueueBucket::broken, broken_, passed);
  count(QueueBucket::suspended, suspended_.kept(), passed);
  if (spec_->health.any()) count(QueueBucket::drained, drained_gpus(), passed);
  held_time_ += GpuTime(held_, passed);
  for (std::size_t l = 0; l < licenses_held_.size(); ++l) {
    license_time_[l] += GpuTime(licenses_held_[l], passed);
  }
  given_time_ += GpuTime(given_, passed);
  rented_.advance(passed);
  now_ = to;
}

void QueueState::wait(std::uint32_t j) {
  states_[j].phase = JobPhase::pending;
  waiting_.add(rank_of(j));
  rented_.waits(j, now_);
}

void QueueState::submit(std::uint32_t j) {
  states_[j].pending_since = now_;
  if (campaigns_.used()) campaigns_.submitted(j, now_);
  if (usage_.used() && !usage_.accepts(j)) {
    states_[j].phase = JobPhase::done;
    states_[j].cancelled = true;
    states_[j].ended = now_;
    ++done_;
    tell_of_end(j, false);
    return;
  }
  if (usage_.used()) usage_.submitted(j);
  if (priorities_.used()) priorities_.set_eligible(j, now_);
  if (gates_.used()) {
    states_[j].phase = JobPhase::kept;
    gates_.submitted(j, now_, usage_.used() && usage_.never(j));
    return;
  }
  if (!priority_.empty()) priority_[j] = priorities_.priority_of(j, now_);
  wait(j);
}

void QueueState::count_held(std::uint32_t j, int sign) {
  const QueueJob& of = job(j);
  const std::int64_t gpus = std::int64_t{sign} * states_[j].width;
  ++moves_;
  held_ += gpus;
  if (of.training < 0) given_ += gpus;
  if (draws_) {
    drawn_ += gpus * draws_->microwatts_of(spec_->training_at(of, states_[j].width));
  }
}

void QueueState::count_owned(std::uint32_t j, int sign) {
  const QueueJob& of = job(j);
  const std::int64_t gpus = std::int64_t{sign} * states_[j].width;
  user_gpus_[of.user] += gpus;
  account_gpus_[of.account] += gpus;
  dominant_.count(of, sign);
  count_licenses(j, sign);
  if (cohorts_.used()) cohorts_.add(cohorts_.queue_of(of.account), gpus);
}

void QueueState::hold(std::uint32_t j, Holding where) {
  free_.take(where);
  states_[j].held = std::move(where);
  states_[j].held_since = states_[j].width_since = now_;
  count_held(j, 1);
}

void QueueState::start(std::uint32_t j, Holding where, int width) {
  waiting_.remove(rank_of(j));
  rented_.waits_no_more(j);
  JobState& s = states_[j];
  s.width = width > 0 ? width : job(j).gpus;
  hold(j, std::move(where));
  count_owned(j, 1);
  s.waited += now_ - s.pending_since;
  s.phase = JobPhase::running;
  s.began = s.active_since = s.settled = now_;
  s.left_before = s.left;
  s.speed = 1;
  const bool again = s.first_start >= 0;
  if (!again) s.first_start = now_;
  s.ready = now_ + (again ? spec_->preemption.restart : 0);
  s.ends = s.ready + s.left;
  ends_.set(j, s.ends);
  by_limit_.emplace(limit_end(j), j);
  if (usage_.used()) usage_.started(j, limit_end(j));
  if (gates_.used()) gates_.started(j, now_);
  if (cohorts_.used()) {
    admitted_[cohorts_.queue_of(job(j).account)].insert({job(j).priority, now_, j});
  }
  resume_suspended();
  const PreemptionMode mode = spec_->preemption.mode;
  if (mode == PreemptionMode::evict) exempt_.set(j, now_ + spec_->preemption.exempt);
  const bool falls = mode == PreemptionMode::evict || mode == PreemptionMode::replan;
  if (falls && by_levels()) foresee_level(j);
  if (s.width != job(j).gpus) set_speed(j, speed_at(j, s.width));
}

void QueueState::leave_gpus(std::uint32_t j, SpanEnd how) {
  JobState& s = states_[j];
  by_limit_.erase({limit_end(j), j});
  ends_.remove(j);
  if (priorities_.used()) priorities_.count(j, s.active_since, now_);
  free_.give(s.held);
  keep_span(j, how);
  s.held.clear();
  s.attained += now_ - s.active_since;
  count_held(j, -1);
  count_width(j);
}

void QueueState::let_go(std::uint32_t j, SpanEnd how) {
  const JobState& s = states_[j];
  const QueueJob& of = job(j);
  if (spec_->preemption.mode == PreemptionMode::evict) {
    evictable_[waiting_.class_of(j)].erase(lasting_rank(j));
    exempt_.remove(j);
  }
  if (by_levels()) levels_.remove(j);
  if (spec_->preemption.by_slurm()) graces_.remove(j);
  if (usage_.used()) usage_.stopped(j);
  if (cohorts_.used()) {
    admitted_[cohorts_.queue_of(of.account)].erase({of.priority, s.began, j});
  }
  leave_gpus(j, how);
  count_owned(j, -1);
}

void QueueState::keep_span(std::uint32_t j, SpanEnd how) {
  const JobState& s = states_[j];
  const bool lasted = s.held_since < now_ || s.left == 0;  // else preempted as soon as it started
  if (keep_spans_ && lasted) spans_.push_back({j, s.held_since, now_, s.held, how});
}

void QueueState::take_instead(std::uint32_t j, Holding where) {
  JobState& s = states_[j];
  if (where != s.held) {
    keep_span(j, SpanEnd::moved);
    s.held = std::move(where);
    s.held_since = now_;
  }
  take_back(j);
}

QueueState::Progress QueueState::progress_of(std::uint32_t j) const {
  const JobState& s = states_[j];
  const RunTime from = std::clamp(s.ready, s.settled, now_);
  const RunTime held = now_ - from;
  Progress out{.worked = held, .starting = from - s.settled, .slowed = 0};
  if (s.speed == 1) return out;
  const double worked = std::floor(static_cast<double>(held) * s.speed);
  out.worked = std::min(s.left, static_cast<RunTime>(worked));
  if (now_ == s.ends) out.worked = s.left;  // the end was rounded up
  out.slowed = held - out.worked;
  return out;
}

/// Counts a running job up to now. `overhead`: the part of its work that does not count as useful.
void QueueState::settle(std::uint32_t j, RunTime overhead) {
  JobState& s = states_[j];
  const Progress progress = progress_of(j);
  const RunTime lost = std::min(progress.worked, overhead);
  const std::int64_t gpus = s.width, asked = job(j).gpus;
  count(QueueBucket::starting, gpus, progress.starting);
  count(QueueBucket::starting, asked, lost);
  count(QueueBucket::useful, asked, progress.worked - lost);
  // Below 0 on nodes that are faster than the reference's, and on widths that are more efficient
  // than the job's own: its work counts in full.
  GpuTime slowed(gpus, progress.worked + progress.slowed);
  slowed -= GpuTime(asked, progress.worked);
  books_[static_cast<std::size_t>(QueueBucket::slowed)] += slowed;
  s.slowed += progress.slowed;
  s.left -= progress.worked - lost;
  s.left_least = std::min(s.left_least, s.left);
  s.settled = now_;
}

void QueueState::foresee_end(std::uint32_t j) {
  JobState& s = states_[j];
  std::set<JobRank>& of_class = evictable_[waiting_.class_of(j)];
  const bool evictable = of_class.erase(lasting_rank(j)) > 0;
  by_limit_.erase({limit_end(j), j});
  const RunTime takes =
      s.speed == 1 ? s.left
                   : static_cast<RunTime>(std::ceil(static_cast<double>(s.left) / s.speed));
  s.ends = std::max(s.ready, now_) + takes;
  ends_.set(j, s.ends);
  by_limit_.emplace(limit_end(j), j);
  if (evictable) of_class.insert(lasting_rank(j));
}

void QueueState::charge_overhead(std::uint32_t j, RunTime overhead) {
  settle(j, overhead);
  foresee_end(j);
}

void QueueState::set_speed(std::uint32_t j, double speed) {
  JobState& s = states_[j];
  if (s.speed == speed) return;
  settle(j);
  s.speed = speed;
  foresee_end(j);
}

void QueueState::finish(std::uint32_t j) {
  JobState& s = states_[j];
  assert(s.ends == now_);
  if (s.phase == JobPhase::rented) return finish_rented(j);
  settle(j);
  assert(s.left == 0);
  let_go(j, SpanEnd::ended);
  close_well(j);
}

void QueueState::close_well(std::uint32_t j) {
  states_[j].ended = now_;
  const JobTerms* const terms = spec_->terms_of(j);
  close(j, !job(j).cut && (terms == nullptr || !terms->fails));
}

void QueueState::close(std::uint32_t j, bool well) {
  states_[j].phase = JobPhase::done;
  ++done_;
  if (usage_.used()) usage_.ended(j);
  tell_of_end(j, well);
}

RunTime QueueState::unsaved(std::uint32_t j, RunTime left, SpanEnd how) const {
  const RunTime since_start = states_[j].left_before - left;
  const std::optional<RunTime>& every = spec_->preemption.checkpoint;
  if (!every) return how == SpanEnd::failed ? since_start : 0;
  return *every > 0 ? std::min((job(j).runs - left) % *every, since_start) : 0;
}

/// Loses the work since the last checkpoint.
void QueueState::lose_unsaved(std::uint32_t j, SpanEnd how) {
  JobState& s = states_[j];
  const RunTime lost = unsaved(j, s.left, how);
  const GpuTime time(job(j).gpus, lost);
  books_[static_cast<std::size_t>(QueueBucket::useful)] -= time;
  books_[static_cast<std::size_t>(QueueBucket::lost)] += time;
  s.left += lost;
}

void QueueState::wait_again(std::uint32_t j, SpanEnd how) {
  JobState& s = states_[j];
  if (s.phase == JobPhase::suspended) {
    lose_unsaved(j, how);
    drop_suspended(j, how);
  } else {
    settle(j);
    lose_unsaved(j, how);
    let_go(j, how);
  }
  s.pending_since = now_;
  if (!gates_.used() || spec_->admission != QueueAdmission::slurm) return wait(j);
  s.phase = JobPhase::kept;
  gates_.requeued(j, now_ + spec_->slurm.requeue_delay);
}

void QueueState::evict(std::uint32_t j) {
  ++states_[j].evictions;
  wait_again(j, SpanEnd::preempted);
}

std::vector<std::uint32_t> QueueState::jobs_on(int node) const {
  std::vector<std::uint32_t> out;
  const auto on_node = [node](const HeldGpus& held) { return held.node == node; };
  for (const auto& [end, j] : by_limit_) {
    if (std::ranges::any_of(states_[j].held, on_node)) out.push_back(j);
  }
  for (const SuspendedJobs::Job& of : suspended_.jobs()) {
    if (std::ranges::any_of(of.held, on_node)) out.push_back(of.job);
  }
  return out;
}

void QueueState::fail(int node, bool stays_broken) {
  for (const std::uint32_t j : jobs_on(node)) {
    ++states_[j].failures;
    if (!shrink(j, node)) wait_again(j, SpanEnd::failed);
  }
  if (!stays_broken || !free_.is_open(node)) return;
  free_.close(node);
  broken_ += free_.gpus_per_node();
}

void QueueState::mend(int node) {
  if (free_.is_open(node)) return;  // broken twice, and whole again since the first repair
  free_.open(node);
  broken_ -= free_.gpus_per_node();
}

void QueueState::close_books() {
  for (const auto& [end, j] : by_limit_) {
    settle(j);
    count_width(j);
    keep_span(j, SpanEnd::open);
  }
  for (const SuspendedJobs::Job& of : suspended_.jobs()) {
    states_[of.job].suspended += now_ - states_[of.job].suspended_at;
  }
  for (const std::uint32_t j : rented_.running()) keep_rented_span(j, SpanEnd::open);
  rented_.close(now_);
  for (JobState& s : states_) {
    const bool waits = s.phase == JobPhase::pending || s.phase == JobPhase::kept;
    if (waits) s.waited += now_ - s.pending_since;
  }
}

}  // namespace lockstep
