/// The state of a cluster with a queue: who waits, who runs where, and the books of all GPU time.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/cluster/association_tree.hpp"
#include "sim/cluster/campaign_rungs.hpp"
#include "sim/cluster/cohort_quotas.hpp"
#include "sim/cluster/dominant_shares.hpp"
#include "sim/cluster/free_gpus.hpp"
#include "sim/cluster/gpu_time.hpp"
#include "sim/cluster/job_gates.hpp"
#include "sim/cluster/job_priorities.hpp"
#include "sim/cluster/queue_draws.hpp"
#include "sim/cluster/rented_nodes.hpp"
#include "sim/cluster/reserved_nodes.hpp"
#include "sim/cluster/suspended_jobs.hpp"
#include "sim/cluster/usage_limits.hpp"
#include "sim/cluster/waiting_jobs.hpp"
#include "sim/core/indexed_heap.hpp"
#include "sim/scenario/queue_spec.hpp"

namespace lockstep {

/// Where the cluster's GPU time goes. Together: capacity times time.
enum class QueueBucket : std::uint8_t {
  useful,    ///< work that lasts
  starting,  ///< held by a job that restarts, or that was placed anew
  lost,      ///< work that an eviction or a failure threw away
  slowed,    ///< held by a training beyond what its work takes at its reference pace
  blocked,   ///< free while jobs wait: none fits, or the order, a quota or a reservation holds them
  reserved,  ///< free, set aside by an advance reservation
  idle,      ///< free while nobody waits
  broken,    ///< in repair
  suspended,  ///< kept for suspended jobs, and used by nobody
  drained,    ///< free on nodes that take no jobs: drained, in a lemon's repair, or burning in
  capped,     ///< free while jobs wait, without the power that the site's cap would have to leave
};
constexpr std::size_t kQueueBuckets = 11;
constexpr std::array<std::string_view, kQueueBuckets> kQueueBucketNames{
    "useful", "starting", "lost",      "slowed",  "blocked", "reserved",
    "idle",   "broken",   "suspended", "drained", "capped"};

/// Why a job holds its GPUs no more.
enum class SpanEnd : std::uint8_t {
  open,       ///< it does, at the end of what was simulated
  ended,      ///< its run is over, for good
  moved,      ///< it runs on elsewhere
  suspended,  ///< it may go on there; where its run is over meanwhile, an empty span follows
  preempted,  ///< it goes for another
  failed,     ///< its node broke
};

/// GPUs that a job has held without a break.
struct JobSpan {
  std::uint32_t job = 0;
  RunTime begin = 0, end = 0;
  Holding held{};  ///< rented nodes have numbers behind those of the cluster
  SpanEnd how = SpanEnd::open;
};

enum class JobPhase : std::uint8_t {
  future,
  kept,  ///< submitted, and not to be looked at yet: JobGates says why
  pending,
  running,
  rented,  ///< it runs on rented nodes
  suspended,
  done,
};

/// A running job's place among those that may be preempted: the lowest priority first, then
/// whoever started last.
struct DispensableRank {
  std::int32_t priority;
  RunTime began;
  std::uint32_t job;

  friend bool operator<(const DispensableRank& a, const DispensableRank& b) {
    if (a.priority != b.priority) return a.priority < b.priority;
    return a.began != b.began ? a.began > b.began : a.job > b.job;
  }
};

/// What has become of a job so far.
struct JobState {
  RunTime left = 0;           ///< work still to do at `settled`, as time at its reference pace
  RunTime left_before = 0;    ///< when its present run began: what is saved for sure
  RunTime left_least = 0;     ///< at any time: less than `left` after work was lost
  RunTime began = -1;         ///< its present run
  RunTime held_since = -1;    ///< the same GPUs
  RunTime active_since = -1;  ///< its present run, or since it goes on after a suspension
  RunTime ready = -1;         ///< when it works again: a restart is over
  RunTime settled = -1;       ///< up to when it has been counted
  double speed = 1;           ///< as a share of that pace
  RunTime ends = 0;           ///< unless something comes between
  RunTime first_start = -1;
  RunTime ended = -1;
  RunTime pending_since = 0;
  RunTime waited = 0;    ///< all times between submission and end in which it held nothing
  RunTime attained = 0;  ///< time in which it has held its GPUs
  RunTime slowed = 0;    ///< of that, beyond what its work takes at the reference pace
  RunTime suspended_at = 0;
  RunTime suspended = 0;    ///< all times in which it was
  RunTime width_since = 0;  ///< it holds so many GPUs
  GpuTime held_time{};      ///< up to then
  std::int32_t width = 0;   ///< GPUs that it holds, while it does
  std::int32_t resizes = 0;
  std::int32_t evictions = 0;
  std::int32_t suspensions = 0;
  std::int32_t failures = 0;
  JobPhase phase = JobPhase::future;
  bool stopped = false;    ///< before its work was done: its reservation was over
  bool cancelled = false;  ///< at `ended`
  Holding held{};
};

/// Moves jobs between their phases and keeps the books. What starts when is up to the passes.
class QueueState {
 public:
  /// `spec` outlives it.
  QueueState(const QueueSpec& spec, bool keep_spans);

  [[nodiscard]] const QueueSpec& spec() const { return *spec_; }
  [[nodiscard]] const QueueJob& job(std::uint32_t j) const { return spec_->jobs[j]; }
  [[nodiscard]] const JobState& state(std::uint32_t j) const { return states_[j]; }
  [[nodiscard]] RunTime now() const { return now_; }
  [[nodiscard]] const FreeGpus& free() const { return free_; }
  [[nodiscard]] const Placer& placer() const { return placer_; }
  /// least_contended: who says what running trainings send. It is asked at each placement.
  void set_link_loads(std::function<const LinkLoads*()> loads) { link_loads_ = std::move(loads); }
  [[nodiscard]] const LinkLoads* link_loads() const {
    return link_loads_ ? link_loads_() : nullptr;
  }
  /// How often a job began or ceased to hold GPUs.
  [[nodiscard]] std::uint64_t moves() const { return moves_; }
  /// Where the job goes on what is free of the nodes `within` (null: all): the components of a
  /// heterogeneous one in their order, each in its own partition, and none unless all fit.
  [[nodiscard]] std::optional<Holding> place(const FreeGpus& free, std::uint32_t j,
                                             const NodeSet* within) const;
  [[nodiscard]] const WaitingJobs& waiting() const { return waiting_; }
  [[nodiscard]] const IndexedHeap<RunTime>& ends() const { return ends_; }
  /// Running jobs by the latest time at which their limit ends them.
  [[nodiscard]] const std::set<std::pair<RunTime, std::uint32_t>>& by_limit() const {
    return by_limit_;
  }
  /// Nodes of the partition; null: all.
  [[nodiscard]] const NodeSet* nodes_of(std::uint16_t partition) const;
  /// Nodes that a job may have from `at` on for as long as it `lasts`; null: all. `scratch` holds
  /// them where reservations leave it some.
  [[nodiscard]] const NodeSet* nodes_for(std::uint32_t j, RunTime at, RunTime lasts,
                                         NodeSet& scratch) const {
    if (!reserved_.any()) return nodes_of(job(j).partition);
    return unreserved_for(j, at, lasts, scratch);
  }
  [[nodiscard]] const ReservedNodes& reserved() const { return reserved_; }
  [[nodiscard]] std::uint16_t reservation_of(std::uint32_t j) const;
  /// Whether a quota or a limit keeps jobs of the class from starting now.
  [[nodiscard]] bool over_quota(const JobClass& of) const;
  /// Whether a quota or a limit keeps jobs of the class from starting now, those of ClusterQueues
  /// left out.
  [[nodiscard]] bool over_owner_quota(const JobClass& of) const;
  [[nodiscard]] const CohortQuotas& cohorts() const { return cohorts_; }
  /// Running jobs of a ClusterQueue.
  [[nodiscard]] const std::set<DispensableRank>& admitted(std::uint16_t cluster_queue) const {
    return admitted_[cluster_queue];
  }
  /// Whether a start of the class would draw more than the site's cap, if all that is not held were
  /// idle, what is broken as well: so the cap holds when that is repaired.
  [[nodiscard]] bool over_power(const JobClass& of) const {
    return spec_->power_cap && draws_with(of, of.gpus) > *spec_->power_cap;
  }
  /// What the site would draw with so many GPUs more that jobs of the class held. Requires
  /// spec().power.
  [[nodiscard]] Watts draws_with(const JobClass& of, std::int64_t gpus) const {
    const std::int64_t idle = spec_->cluster.gpus() - held_ - gpus;
    return draws_->facility(drawn_ + gpus * draws_->microwatts_of(of.draws_as), idle);
  }
  /// over_quota() but for power.
  [[nodiscard]] bool over_quota_beside_power(const JobClass& of) const {
    return over_owner_gpus(of) || over_licenses(of) || over_cohort(of);
  }
  /// Whether jobs of the class lack licences that others hold.
  [[nodiscard]] bool over_licenses(const JobClass& of) const;
  /// Whether they are all that jobs of the class lack of what over_quota() asks for.
  [[nodiscard]] bool lacks_only_licenses(const JobClass& of) const;
  /// Licences that jobs hold now: of QueueSpec::licenses.
  [[nodiscard]] const std::vector<std::int64_t>& licenses_held() const { return licenses_held_; }
  /// Licences that jobs have held, by time: of QueueSpec::licenses.
  [[nodiscard]] const std::vector<GpuTime>& license_time() const { return license_time_; }
  [[nodiscard]] bool over_limit(const JobClass& of) const {
    return usage_.used() && usage_.over(of);
  }
  /// Whether a limit of GPU time, or its reservation, keeps the job from starting now. Nobody else
  /// has to wait for that.
  [[nodiscard]] bool held_back(std::uint32_t j) const {
    return !classes_are_alike() && (over_time(j) || waits_for_reservation(j));
  }
  [[nodiscard]] bool over_time(std::uint32_t j) const {
    return usage_.limits_time() && usage_.over_time(j, priorities_, now_);
  }
  /// Whether jobs of a class that cannot start are followed by none of the class that can: their
  /// time limits do not matter.
  [[nodiscard]] bool classes_are_alike() const { return !reserved_.any() && !usage_.limits_time(); }
  /// Whether decaying usage may let a job start.
  [[nodiscard]] bool limits_time() const { return usage_.limits_time(); }
  [[nodiscard]] const JobGates& gates() const { return gates_; }
  [[nodiscard]] const CampaignRungs& campaigns() const { return campaigns_; }
  [[nodiscard]] const JobPriorities& priorities() const { return priorities_; }
  /// Jobs that have ended or were cancelled.
  [[nodiscard]] std::size_t done() const { return done_; }
  /// Its place in the order now, whether it waits or runs.
  [[nodiscard]] JobRank rank_of(std::uint32_t j) const;
  /// Running jobs of a class that may be evicted, in their order, which lasts: of one width,
  /// whoever has less left now has less left later. The keys are not those of rank_of().
  [[nodiscard]] const std::set<JobRank>& evictable_of(std::uint32_t job_class) const {
    return evictable_[job_class];
  }
  /// las, gittins: when a running job falls a level; INT64_MAX: none does.
  [[nodiscard]] RunTime next_level() const;
  void fall_levels();
  /// evict: whoever has run for long enough may be evicted from now on.
  void end_exemptions();

  /// The next time at which anything here happens by itself beside an end and a level: a begin
  /// time, a grace that is over, a reservation that begins or ends.
  [[nodiscard]] RunTime next_rule() const;
  /// Whoever has waited too long starts on rented nodes, in the order, as far as these have room.
  /// To be called when the scheduler has looked.
  void burst();
  [[nodiscard]] const RentedNodes& rented() const { return rented_; }
  /// Ends the graces and the reservations whose time has come.
  void apply_rules();
  /// drf: puts waiting jobs in the order of what accounts hold now. No walk over them outlives it.
  void reckon_shares();
  /// Whether a start changes the order of those that wait.
  [[nodiscard]] bool starts_change_order() const { return dominant_.used(); }
  /// Reckons usage and priorities where it is time to.
  void reckon_priorities();
  /// Jobs wait from now on that nothing keeps any more; cancelled ones go.
  void open_gates();

  void advance(RunTime to);
  void submit(std::uint32_t j);
  /// Jobs of trials that go on, which were submitted here since the last call.
  std::vector<std::uint32_t> take_going_on() { return std::exchange(going_on_, {}); }
  /// On so many GPUs; 0: on those that it asks for.
  void start(std::uint32_t j, Holding where, int width = 0);
  /// Requires that its end has come.
  void finish(std::uint32_t j);
  /// Work of a running job that an eviction now would throw away.
  [[nodiscard]] RunTime would_lose(std::uint32_t j) const {
    return unsaved(j, states_[j].left - progress_of(j).worked, SpanEnd::preempted);
  }
  /// Takes a running job's GPUs; it waits again, with what it has saved.
  void evict(std::uint32_t j);
  /// By Slurm's rules: it goes when its grace is over, to be requeued or cancelled. Whether it is
  /// gone already.
  bool preempt(std::uint32_t j);
  [[nodiscard]] const SuspendedJobs& suspended() const { return suspended_; }
  /// What suspended jobs keep that a waiting one may suspend is free for a trial, until it starts
  /// or suspended jobs take it back.
  void lend_kept(const std::function<bool(std::uint32_t)>& is_lent) {
    suspended_.lend(free_, is_lent);
  }
  /// Free GPUs of suspended jobs are kept for them; whoever has all of its own goes on.
  void resume_suspended();
  /// When the limit of a running job ends it, at the latest; of a suspended one as if it ran on.
  [[nodiscard]] RunTime limit_end(std::uint32_t j) const {
    const RunTime end = states_[j].ends + (job(j).limit - job(j).runs);
    return reserved_.any() ? std::min(end, reserved_.stops_at(reservation_of(j))) : end;
  }
  /// The node breaks: jobs on it wait again, and nobody is placed on it until mend().
  void fail(int node, bool stays_broken);
  void mend(int node);
  /// QueueHealth: nobody is placed on the node until open_node(); whoever is on it stays.
  void close_node(int node);
  void open_node(int node);
  /// Jobs on the node go, and wait again. How many.
  int evict_from(int node);
  /// Whether the node is closed and not broken.
  [[nodiscard]] bool is_drained(int node) const {
    return drained_nodes_.count() > 0 && drained_nodes_.has(node);
  }
  /// GPUs on such nodes that nobody holds.
  [[nodiscard]] std::int64_t drained_gpus() const {
    if (!spec_->health.any()) return 0;
    return spec_->cluster.gpus() - held_ - free_.total() - broken_ - suspended_.kept();
  }
  /// replan: a running job has worked since the last time but for `overhead`.
  void charge_overhead(std::uint32_t j, RunTime overhead);
  /// From now on a running job works at this share of its reference pace. Requires one above 0.
  void set_speed(std::uint32_t j, double speed);

  /// A running job's width changes, and it works on after `cost`. Requires that its GPUs were lent.
  void resize(std::uint32_t j, Holding where, int width, RunTime cost);
  /// themis: puts waiting jobs in the order of their finish-time fairness as it is now.
  void reckon_fairness();

  // A trial, or a move: GPUs change hands, and nothing else.
  void lend(std::uint32_t j) { free_.give(states_[j].held); }
  void take_back(std::uint32_t j) { free_.take(states_[j].held); }
  void take_instead(std::uint32_t j, Holding where);

  /// Closes the books at now(): running jobs are counted as far as they have come.
  void close_books();
  /// Complete after close_books().
  [[nodiscard]] const std::array<GpuTime, kQueueBuckets>& books() const { return books_; }
  [[nodiscard]] std::int64_t held_gpus() const { return held_; }
  [[nodiscard]] std::int64_t broken_gpus() const { return broken_; }
  [[nodiscard]] GpuTime held_time() const { return held_time_; }
  /// What the site draws now; 0 where the scenario does not say "power".
  [[nodiscard]] Watts drawn() const {
    const std::int64_t idle = free_.total() + suspended_.kept() + drained_gpus();
    return draws_ ? draws_->facility(drawn_, idle) : Watts{};
  }
  /// GPU time that jobs of given duration have held.
  [[nodiscard]] GpuTime given_time() const { return given_time_; }
  /// GPU time that the jobs of each account have held.
  [[nodiscard]] const std::vector<GpuTime>& account_time() const { return account_time_; }
  /// In the order of their ends; of running jobs after close_books(). Empty unless they are kept.
  [[nodiscard]] std::vector<JobSpan> take_spans() { return std::move(spans_); }

 private:
  [[nodiscard]] bool waits_for_reservation(std::uint32_t j) const;
  [[nodiscard]] const NodeSet* unreserved_for(std::uint32_t j, RunTime at, RunTime lasts,
                                              NodeSet& scratch) const;
  /// Since a job was counted last.
  struct Progress {
    RunTime worked = 0, starting = 0, slowed = 0;
  };
  [[nodiscard]] bool over_owner_gpus(const JobClass& of) const;
  [[nodiscard]] bool over_cohort(const JobClass& of) const;
  /// Of so many free GPUs those that have no power, while a job waits for that.
  [[nodiscard]] std::int64_t capped_gpus(std::int64_t free) const;
  [[nodiscard]] Progress progress_of(std::uint32_t j) const;
  void settle(std::uint32_t j, RunTime overhead = 0);
  void foresee_end(std::uint32_t j);
  [[nodiscard]] RunTime attained(std::uint32_t j) const;
  [[nodiscard]] std::size_t level_of(std::uint32_t j) const;
  [[nodiscard]] JobRank place_of(std::uint32_t j) const;
  [[nodiscard]] JobRank lasting_rank(std::uint32_t j) const;
  [[nodiscard]] bool by_levels() const {
    return spec_->order == QueueOrder::las || spec_->order == QueueOrder::gittins;
  }
  void foresee_level(std::uint32_t j);
  void count(QueueBucket bucket, std::int64_t gpus, RunTime time) {
    books_[static_cast<std::size_t>(bucket)] += GpuTime(gpus, time);
  }
  /// Work since it last started that no checkpoint holds, of a job that is preempted or failed
  /// with so much left.
  [[nodiscard]] RunTime unsaved(std::uint32_t j, RunTime left, SpanEnd how) const;
  void lose_unsaved(std::uint32_t j, SpanEnd how);
  /// Running and suspended jobs that hold GPUs of the node.
  [[nodiscard]] std::vector<std::uint32_t> jobs_on(int node) const;
  void keep_span(std::uint32_t j, SpanEnd how);
  void hold(std::uint32_t j, Holding where);
  void let_go(std::uint32_t j, SpanEnd how);
  /// Its GPUs are free, and its time on them is counted.
  void leave_gpus(std::uint32_t j, SpanEnd how);
  /// From now on it holds its GPUs (`sign` 1), or does not any more (-1).
  void count_held(std::uint32_t j, int sign);
  /// count_held() for the limits of its owners, in which a suspended job still counts.
  void count_owned(std::uint32_t j, int sign);
  /// Counts what its account has held since its width changed last.
  void count_width(std::uint32_t j);
  /// As a share of its speed on the GPUs that it asks for.
  [[nodiscard]] double speed_at(std::uint32_t j, int width) const;
  /// It goes on on what the broken node leaves it. False: no width of its own fits there.
  bool shrink(std::uint32_t j, int node);
  /// When it will have finished since its submission, over how long it takes alone: as if it held
  /// its GPUs from now on. Source: Mahajan et al. 2020, NSDI (Themis), section 3.1.
  [[nodiscard]] double finish_time_fairness(std::uint32_t j) const;
  /// Whether it is suspended where it is preempted.
  [[nodiscard]] bool suspends(std::uint32_t j) const;
  void suspend(std::uint32_t j);
  void resume(const SuspendedJobs::Job& of);
  /// It is suspended no more, and does not go on.
  void drop_suspended(std::uint32_t j, SpanEnd how);
  void wait_again(std::uint32_t j, SpanEnd how);
  void wait(std::uint32_t j);
  void stop_preempted(std::uint32_t j);
  /// Its end, before its work is done.
  void stop(std::uint32_t j);
  void close(std::uint32_t j, bool well);
  /// What waits for the job, and whose trials go on after it.
  void tell_of_end(std::uint32_t j, bool well);
  void cancel(std::uint32_t j);
  void count_licenses(std::uint32_t j, int sign);
  void start_rented(std::uint32_t j, RunTime end);
  void finish_rented(std::uint32_t j);
  void keep_rented_span(std::uint32_t j, SpanEnd how);
  /// Its work is done.
  void close_well(std::uint32_t j);
  void end_reservations();
  /// Where jobs of higher tiers, with reservations or of preempting quality come first.
  [[nodiscard]] double precedence_of(std::uint32_t j) const;
  [[nodiscard]] double precedence(std::uint32_t j) const {
    return precedences_.empty() ? 0 : precedence_of(j);
  }

  const QueueSpec* spec_;
  bool keep_spans_;
  std::vector<JobSpan> spans_;
  RunTime now_ = 0;
  FreeGpus free_;
  Placer placer_;
  std::function<const LinkLoads*()> link_loads_;
  std::uint64_t moves_ = 0;
  std::vector<NodeSet> partitions_;
  NodeSet drained_nodes_;
  std::vector<JobState> states_;
  WaitingJobs waiting_;
  IndexedHeap<RunTime> ends_, levels_, exempt_;
  std::set<std::pair<RunTime, std::uint32_t>> by_limit_;
  std::vector<std::set<JobRank>> evictable_;
  std::vector<std::int64_t> user_gpus_, account_gpus_, user_quota_, account_quota_;
  std::vector<GpuTime> account_time_;
  std::vector<std::int64_t> licenses_held_;
  std::vector<GpuTime> license_time_;
  AssociationTree tree_;
  JobPriorities priorities_;
  UsageBook usage_;
  JobGates gates_;
  CampaignRungs campaigns_;
  std::vector<std::uint32_t> going_on_;
  ReservedNodes reserved_;
  NodeSet reserved_now_;
  RunTime next_reservation_;
  IndexedHeap<RunTime> graces_;
  SuspendedJobs suspended_;
  RentedNodes rented_;
  std::vector<double> gittins_;    ///< of levels
  std::vector<double> predicted_;  ///< of jobs: qssf; keys where an extension is the order
  DominantShares dominant_;
  std::vector<double> priority_;     ///< multifactor: of jobs, as it was reckoned last
  std::vector<double> fairness_;     ///< themis: the same
  std::vector<double> precedences_;  ///< of qualities of service, then of partitions; empty: none
  std::size_t done_ = 0;
  std::array<GpuTime, kQueueBuckets> books_{};
  GpuTime held_time_{}, given_time_{};
  std::int64_t held_ = 0, broken_ = 0;
  std::int64_t given_ = 0;  ///< of those held, by jobs of given duration
  std::optional<QueueDraws> draws_;
  std::int64_t drawn_ = 0;  ///< microwatts of what is held
  CohortQuotas cohorts_;
  std::vector<std::set<DispensableRank>> admitted_;  ///< by ClusterQueue
};

}  // namespace lockstep
