#include "sim/cluster/queue_pass.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <optional>
#include <queue>
#include <utility>

#include "sim/cluster/preemption.hpp"
#include "sim/scenario/queue_policy_extension.hpp"

namespace lockstep {
namespace {

std::optional<Holding> place_for(const QueueState& state, std::uint32_t j) {
  const QueueJob& job = state.job(j);
  NodeSet scratch;
  return state.place(state.free(), j, state.nodes_for(j, state.now(), job.limit, scratch));
}

/// Goes on behind a job that cannot start: behind its whole class where that is alike.
void pass_over(const QueueState& state, WaitingWalk& walk) {
  if (state.classes_are_alike()) return walk.pop_class();
  walk.pop();
}

bool preempts(QueueState& state, std::uint32_t j) {
  NodeSet scratch;
  return state.spec().preemption.by_slurm() &&
         preempt_for(state, j, state.nodes_for(j, state.now(), state.job(j).limit, scratch));
}

/// Running jobs that come after a waiting one and may be evicted for it, the last one first.
class Victims {
 public:
  Victims(const QueueState& state, std::uint32_t for_job)
      : state_(&state), rank_(state.rank_of(for_job)), partition_(state.job(for_job).partition) {
    const auto& classes = state.waiting().classes();
    for (std::uint32_t c = 0; c < classes.size(); ++c) {
      const auto& running = state.evictable_of(c);
      if (running.empty() || !shares_nodes(classes[c].partition)) continue;
      push(std::prev(running.end()), c);
    }
  }

  /// The next victim; nothing if no more running jobs come after the waiting one.
  std::optional<std::uint32_t> next() {
    if (lasts_.empty()) return std::nullopt;
    const Last last = lasts_.top();
    if (last.rank.key <= rank_.key) return std::nullopt;
    lasts_.pop();
    if (last.at != state_->evictable_of(last.job_class).begin()) {
      push(std::prev(last.at), last.job_class);
    }
    return last.rank.job;
  }

 private:
  struct Last {
    JobRank rank;
    std::set<JobRank>::const_iterator at;
    std::uint32_t job_class;
    friend bool operator<(const Last& a, const Last& b) { return a.rank < b.rank; }
  };
  /// Whether evicting in one partition can make room in the other.
  [[nodiscard]] bool shares_nodes(std::uint16_t partition) const {
    const NodeSet* const own = state_->nodes_of(partition_);
    const NodeSet* const other = state_->nodes_of(partition);
    return own == nullptr || other == nullptr || own->count_within(*other, 1) > 0;
  }
  void push(std::set<JobRank>::const_iterator at, std::uint32_t job_class) {
    lasts_.push({state_->rank_of(at->job), at, job_class});
  }

  const QueueState* state_;
  JobRank rank_;
  std::uint16_t partition_;
  std::priority_queue<Last> lasts_;
};

/// A job for a rule outside the tree.
JobNow seen_by_rule(const QueueState& state, std::uint32_t j) {
  const QueueSpec& spec = state.spec();
  const QueueJob& job = state.job(j);
  const bool runs = state.state(j).phase == JobPhase::running;
  const RunTime since = runs ? state.state(j).began : state.state(j).pending_since;
  return {.number = j,
          .gpus = job.gpus,
          .priority = job.priority,
          .submit = to_seconds(job.submit),
          .limit = to_seconds(job.limit),
          .so_far = to_seconds(state.now() - since),
          .limit_end = runs ? to_seconds(state.limit_end(j)) : Seconds{},
          .unsaved = runs ? to_seconds(state.would_lose(j)) : Seconds{},
          .user = spec.users[job.user],
          .account = spec.accounts[job.account],
          .model = spec.models[job.model]};
}

/// All that come after a waiting job and may be evicted, as the queue's rule has them go.
std::vector<std::uint32_t> victims_by_rule(const QueueState& state, std::uint32_t j) {
  VictimCall call{.now = to_seconds(state.now()), .waiting = seen_by_rule(state, j), .running = {}};
  std::vector<std::pair<double, std::uint32_t>> keyed;
  Victims victims(state, j);
  while (const std::optional<std::uint32_t> victim = victims.next()) {
    call.running = seen_by_rule(state, *victim);
    keyed.emplace_back(victim_key(state.spec(), call), *victim);
  }
  std::ranges::stable_sort(keyed, std::greater<>(), &std::pair<double, std::uint32_t>::first);
  std::vector<std::uint32_t> out;
  for (const auto& [key, victim] : keyed) out.push_back(victim);
  return out;
}

/// The victims whose GPUs let the job start, as few as are needed; empty: it cannot.
std::vector<std::uint32_t> victims_for(QueueState& state, std::uint32_t j) {
  std::vector<std::uint32_t> lent;
  const int gpus = state.job(j).gpus;
  bool fits = false;
  const auto take = [&](std::uint32_t victim) {
    state.lend(victim);
    lent.push_back(victim);
    fits = state.free().total() >= gpus && place_for(state, j).has_value();
  };
  if (state.spec().preemption.victims > 0) {
    for (const std::uint32_t victim : victims_by_rule(state, j)) {
      if (!fits) take(victim);
    }
  } else {
    for (Victims victims(state, j); !fits;) {
      const std::optional<std::uint32_t> victim = victims.next();
      if (!victim) break;
      take(*victim);
    }
  }
  // Jobs are spared in the order of the queue, the first first; by a rule, who would go last.
  std::vector<std::uint32_t> needed;
  for (std::size_t v = lent.size(); v-- > 0;) {
    state.take_back(lent[v]);
    if (!fits || place_for(state, j)) continue;
    state.lend(lent[v]);
    needed.push_back(lent[v]);
  }
  for (const std::uint32_t victim : needed) state.take_back(victim);
  return needed;
}

/// The classes with waiting jobs that no quota holds back.
WaitingWalk walk_of(const QueueState& state) {
  const auto& classes = state.waiting().classes();
  return {state.waiting(), [&](std::uint32_t c) { return !state.over_quota(classes[c]); }};
}

}  // namespace

void start_in_order(QueueState& state) {
  const bool strict = state.spec().admission == QueueAdmission::strict;
  const bool evicts = state.spec().preemption.mode == PreemptionMode::evict;
  const auto& classes = state.waiting().classes();
  state.reckon_shares();
  WaitingWalk walk = walk_of(state);
  while (!walk.empty()) {
    const std::uint32_t j = walk.front().job;
    if (state.over_quota(classes[walk.front_class()])) {
      walk.pop_class();
      continue;
    }
    if (state.held_back(j)) {
      walk.pop();
      continue;
    }
    std::optional<Holding> where = place_for(state, j);
    if (where) {
      walk.pop();
      state.start(j, *std::move(where));
      if (state.starts_change_order()) {
        state.reckon_shares();
        walk = walk_of(state);
      }
      continue;
    }
    if (preempts(state, j)) where = place_for(state, j);
    if (where) {
      state.start(j, *std::move(where));
      walk = walk_of(state);  // requeued jobs wait
      continue;
    }
    const std::vector<std::uint32_t> victims =
        evicts ? victims_for(state, j) : std::vector<std::uint32_t>();
    if (!victims.empty()) {
      for (const std::uint32_t victim : victims) state.evict(victim);
      state.start(j, place_for(state, j).value());
      walk = walk_of(state);  // evicted jobs wait, and what they held beyond the need is free
    } else if (strict) {
      return;
    } else {
      pass_over(state, walk);
    }
  }
}

namespace {

/// Licences that jobs hold at a time to come.
class PlannedLicenses {
 public:
  explicit PlannedLicenses(const QueueState& state)
      : spec_(&state.spec()), held_(state.licenses_held()) {}

  void take(const QueueJob& job) { add(job, 1); }
  void give(const QueueJob& job) { add(job, -1); }
  [[nodiscard]] bool suffice(const QueueJob& job) const {
    return std::ranges::all_of(spec_->license_sets[job.licenses], [&](const LicenseNeed& need) {
      return held_[need.license] + need.count <= spec_->licenses[need.license].count;
    });
  }

 private:
  void add(const QueueJob& job, int sign) {
    for (const LicenseNeed& need : spec_->license_sets[job.licenses]) {
      held_[need.license] += std::int64_t{sign} * need.count;
    }
  }

  const QueueSpec* spec_;
  std::vector<std::int64_t> held_;  ///< of QueueSpec::licenses
};

/// What the first job in the queue that cannot start will get, and when.
struct Shadow {
  RunTime at = 0;
  FreeGpus spare;            ///< free then, beside what it takes
  PlannedLicenses licenses;  ///< held then, with its own
};

/// Nothing if the job does not fit on the nodes that are up, even without all other jobs, because
/// the end of repairs is unknown; nor if jobs that do not run keep licences that it lacks. Requires
/// a job that fits on the cluster.
std::optional<Shadow> shadow_of(const QueueState& state, std::uint32_t first) {
  constexpr RunTime kNever = std::numeric_limits<RunTime>::max();
  Shadow shadow{.at = state.now(), .spare = state.free(), .licenses = PlannedLicenses(state)};
  const QueueJob& job = state.job(first);
  const auto& ends = state.by_limit();
  const ReservedNodes& reserved = state.reserved();
  RunTime change = reserved.any() ? reserved.next_change(state.now()) : kNever;
  for (auto end = ends.begin(); end != ends.end() || change != kNever;) {
    shadow.at = std::min(change, end == ends.end() ? kNever : std::max(end->first, state.now()));
    for (; end != ends.end() && std::max(end->first, state.now()) == shadow.at; ++end) {
      shadow.spare.give(state.state(end->second).held);
      shadow.licenses.give(state.job(end->second));
    }
    if (change == shadow.at) change = reserved.next_change(change);
    if (shadow.spare.total() < job.gpus || !shadow.licenses.suffice(job)) continue;
    NodeSet scratch;
    const auto where =
        state.place(shadow.spare, first, state.nodes_for(first, shadow.at, job.limit, scratch));
    if (!where) continue;
    shadow.spare.take(*where);
    shadow.licenses.take(job);
    return shadow;
  }
  return std::nullopt;
}

/// Free now and at the shadow's time.
FreeGpus free_at_both(const FreeGpus& now, const FreeGpus& then) {
  FreeGpus out = now;
  for (int node = 0; node < now.nodes(); ++node) {
    const int taken = now.on(node) - std::min(now.on(node), then.on(node));
    if (taken > 0) out.take(std::array{HeldGpus{node, taken}});
  }
  return out;
}

/// Jobs behind the first one that cannot start.
class Backfill {
 public:
  Backfill(QueueState& state, Shadow shadow) : state_(&state), shadow_(std::move(shadow)) {}

  /// Starts the job if that does not delay the first waiting job.
  bool start(std::uint32_t j) {
    const QueueJob& job = state_->job(j);
    const bool ends_before = state_->now() + job.limit <= shadow_.at;
    if (!ends_before && !shadow_.licenses.suffice(job)) return false;
    std::optional<Holding> where = ends_before ? place_for(*state_, j) : place_beside(j);
    if (!where) return false;
    if (ends_before) {
      both_.reset();
    } else {
      shadow_.spare.take(*where);
      shadow_.licenses.take(job);
      both_->take(*where);
    }
    state_->start(j, *std::move(where));
    return true;
  }
  /// Whether any job of the width, however short, could start.
  [[nodiscard]] bool fits(std::uint32_t j) const { return place_for(*state_, j).has_value(); }

 private:
  std::optional<Holding> place_beside(std::uint32_t j) {
    if (!both_) both_ = free_at_both(state_->free(), shadow_.spare);
    const QueueJob& job = state_->job(j);
    NodeSet scratch;
    return state_->place(*both_, j, state_->nodes_for(j, state_->now(), job.limit, scratch));
  }

  QueueState* state_;
  Shadow shadow_;
  std::optional<FreeGpus> both_;
};

/// Starts the first jobs of the queue; what is left of the walk begins with one that cannot start,
/// for want of GPUs or of licences.
void start_first(QueueState& state, WaitingWalk& walk) {
  const auto& classes = state.waiting().classes();
  while (!walk.empty()) {
    const bool lacks_licenses = state.lacks_only_licenses(classes[walk.front_class()]);
    if (!lacks_licenses && state.over_quota(classes[walk.front_class()])) {
      walk.pop_class();
      continue;
    }
    const std::uint32_t j = walk.front().job;
    if (state.held_back(j)) {
      walk.pop();
      continue;
    }
    if (lacks_licenses) return;
    std::optional<Holding> where = place_for(state, j);
    if (!where) return;
    walk.pop();
    state.start(j, *std::move(where));
  }
}

}  // namespace

void start_easy(QueueState& state) {
  const auto& classes = state.waiting().classes();
  WaitingWalk walk(state.waiting(), [&](std::uint32_t c) {
    return !state.over_quota(classes[c]) || state.lacks_only_licenses(classes[c]);
  });
  std::optional<Shadow> shadow;
  while (!shadow) {
    start_first(state, walk);
    if (walk.empty() || state.free().total() == 0) return;
    shadow = shadow_of(state, walk.front().job);
    if (shadow) break;
    if (!state.over_licenses(classes[walk.front_class()])) return;
    walk.pop_class();  // it is unknown when those licences are free
  }
  walk.pop();
  Backfill backfill(state, *std::move(shadow));
  while (!walk.empty() && state.free().total() > 0) {
    const std::uint32_t j = walk.front().job;
    const std::uint32_t job_class = walk.front_class();
    if (state.over_quota(classes[job_class])) {
      walk.pop_class();
    } else if (!backfill.fits(j)) {
      pass_over(state, walk);
    } else {
      walk.pop();
      if (!state.held_back(j)) backfill.start(j);
    }
  }
}

void start_by_extension(QueueState& state) {
  const auto& classes = state.waiting().classes();
  const auto may_start = [&](std::uint32_t j) {
    return !state.over_quota(classes[state.waiting().class_of(j)]) && !state.held_back(j);
  };
  AdmissionCall call{.now = to_seconds(state.now()),
                     .free_gpus = static_cast<int>(state.free().total()),
                     .waiting = {},
                     .running = {}};
  for (WaitingWalk walk = walk_of(state); !walk.empty(); walk.pop()) {
    const std::uint32_t j = walk.front().job;
    if (may_start(j)) call.waiting.push_back(seen_by_rule(state, j));
  }
  if (call.waiting.empty()) return;
  for (const auto& [end, j] : state.by_limit()) call.running.push_back(seen_by_rule(state, j));
  for (const std::size_t number : added_starts(state.spec(), call)) {
    const auto j = static_cast<std::uint32_t>(number);
    if (!may_start(j)) continue;
    if (std::optional<Holding> where = place_for(state, j)) state.start(j, *std::move(where));
  }
}

void ReplanPass::put_in_order(const QueueState& state) {
  const auto key = [&](std::uint32_t j) { return state.rank_of(j).key; };
  if (state.spec().order == QueueOrder::las) {
    levels_.resize(state.spec().jobs.size(), 0);
    const auto stays = [&](std::uint32_t j) { return key(j) <= levels_[j]; };
    std::ranges::sort(std::ranges::stable_partition(active_, stays));
    for (const std::uint32_t j : active_) levels_[j] = key(j);
  }
  std::ranges::stable_sort(active_, {}, key);
}

void ReplanPass::run(QueueState& state) {
  std::erase_if(active_, [&](std::uint32_t j) { return state.state(j).phase == JobPhase::done; });
  const auto runs = [&](std::uint32_t j) { return state.state(j).phase == JobPhase::running; };
  for (const std::uint32_t j : active_) {
    if (runs(j)) state.charge_overhead(j, state.spec().overhead_of(state.job(j)));
  }
  put_in_order(state);

  FreeGpus left = state.free();
  for (const std::uint32_t j : active_) {
    if (runs(j)) left.give(state.state(j).held);
  }
  const auto& classes = state.waiting().classes();
  std::vector<std::pair<std::uint32_t, Holding>> placed;
  for (const std::uint32_t j : active_) {
    const QueueJob& job = state.job(j);
    const JobPhase phase = state.state(j).phase;
    if (phase == JobPhase::kept || phase == JobPhase::rented) continue;
    const bool waits = !runs(j);
    if (waits && (state.held_back(j) || state.over_quota(classes[state.waiting().class_of(j)]))) {
      continue;
    }
    NodeSet scratch;
    std::optional<Holding> where =
        state.place(left, j, state.nodes_for(j, state.now(), job.limit, scratch));
    if (where) {
      left.take(*where);
      placed.emplace_back(j, *std::move(where));
    } else if (runs(j)) {
      state.evict(j);
    }
  }
  for (const auto& [j, where] : placed) {
    if (runs(j)) state.lend(j);
  }
  for (auto& [j, where] : placed) {
    if (runs(j)) state.take_instead(j, std::move(where));
  }
  for (auto& [j, where] : placed) {
    if (!runs(j)) state.start(j, std::move(where));
  }
  if (state.spec().order == QueueOrder::las) std::ranges::stable_partition(active_, runs);
}

}  // namespace lockstep
