#include "sim/run/trajectory.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>

#include "sim/run/failure_source.hpp"
#include "sim/run/spare_pool.hpp"

namespace lockstep {
namespace {

constexpr RunTime kNever = FailureSource::kNever;
constexpr std::uint64_t kBookedPerLook = 1 << 16;  ///< some milliseconds

std::size_t at(RunBucket bucket) { return static_cast<std::size_t>(bucket); }

/// What a checkpoint holds: the books up to the moment when it was taken.
struct Capture {
  RunTime work;
  RunTime taken;                   ///< when it began
  RunTime kept;                    ///< when these books were read: after waiting for it
  RunTime whole;                   ///< from when on it can be read
  std::array<RunTime, 3> running;  ///< productive, degraded, checkpoint so far
};
constexpr std::array kRunning{RunBucket::productive, RunBucket::degraded, RunBucket::checkpoint};

class Trajectory {
 public:
  Trajectory(const Campaign& campaign, std::uint32_t number, RunDetail detail,
             const TrajectoryWatch& watch)
      : c_(campaign),
        watch_(watch),
        number_(number),
        work_end_(to_run_time(campaign.work)),
        horizon_(campaign.horizon > 0 ? campaign.horizon : kGivenUpAfter * work_end_),
        timeline_(detail == RunDetail::timeline),
        source_(campaign, number, horizon_),
        pool_(campaign.spares, campaign.seed, number),
        replaced_(stream(number, RunDraw::replacement)),
        corrupt_(stream(number, RunDraw::corruption)),
        discovery_(stream(number, RunDraw::discovery)),
        diagnosis_(stream(number, RunDraw::diagnosis)),
        tiers_(campaign.tiers.size()) {
    out_.failures.resize(c_.modes.size());
    out_.cost.resize(c_.modes.size());
    for (std::size_t t = 0; t < tiers_.size(); ++t) {
      tiers_[t].next = to_run_time(c_.tiers[t].interval);
    }
  }

  TrajectoryResult run() {
    if (c_.pace) pace_law_ = c_.pace(number_);
    while (work_ < work_end_ && now_ < horizon_) {
      if (!meet_pace()) run_to_next();
    }
    for (const Pending& p : pending_) mend(p);
    std::ranges::stable_sort(out_.events, {}, &RunEvent::at);
    out_.wall = now_;
    out_.work = work_;
    return std::move(out_);
  }

 private:
  struct Tier {
    RunTime next = 0;  ///< when the next checkpoint begins
    std::vector<Capture> captures;
  };
  /// A straggler in the job, a degraded part, or wrong numbers that nobody has seen yet.
  struct Pending {
    std::uint32_t mode;
    RunTime since;
    RunTime found;  ///< degraded: when it is mended
    double slowdown;
    RunTime cost = 0;  ///< degraded: by how much it slowed the job so far
  };

  [[nodiscard]] RandomStream stream(std::uint32_t number, RunDraw purpose) const {
    return RandomStream(
        {.seed = c_.seed, .trajectory = number, .component = 0, .purpose = purpose_of(purpose, 0)});
  }

  // --- while the job runs ----------------------------------------------------------------------

  void run_to_next() {
    skip_quiet_periods();
    const RunTime failure = source_.next_at();
    const RunTime until =
        std::min({failure, next_checkpoint(), next_found(), next_whole(), next_growth(),
                  now_ + time_for(work_end_ - work_), horizon_, pace_.until});
    advance(until);
    if (now_ >= horizon_ || work_ >= work_end_) return;
    // One thing at a time, in an order that is the same everywhere.
    if (failure <= now_) {
      meet(take_failure());
    } else if (now_ == next_found()) {
      find_pending();
    } else if (now_ == next_checkpoint()) {
      save_due();
    } else if (now_ == next_growth()) {
      grow();
    }
  }

  /// Of the job's full speed.
  [[nodiscard]] double speed() const {
    double slowest = 1;
    for (const Pending& p : pending_) slowest = std::max(slowest, p.slowdown);
    assert(static_cast<std::size_t>(missing_replicas_) < c_.width_speed.size());
    const double width = c_.width_speed[static_cast<std::size_t>(missing_replicas_)];
    double drag = 0;
    for (std::size_t t = 0; t < tiers_.size(); ++t) {
      if (finishing(tiers_[t])) drag += c_.tiers[t].drag;
    }
    return width / slowest * std::max(0.0, 1 - drag) * pace_.speed;
  }
  [[nodiscard]] RunTime time_for(RunTime work) const {
    const double rate = speed();
    if (rate == 1) return work;
    if (rate <= 0) return kNever / 4;
    return static_cast<RunTime>(std::ceil(static_cast<double>(work) / rate));
  }
  void advance(RunTime until) {
    const RunTime dt = until - now_;
    if (dt <= 0) return;
    const double rate = speed();
    const RunTime left = work_end_ - work_;
    RunTime done = rate == 1 ? dt : static_cast<RunTime>(static_cast<double>(dt) * rate);
    if (done > left || dt >= time_for(left)) done = left;
    work_ += done;
    charge_slowest(dt);
    if (pace_.speed < 1) {
      out_.site_slowed +=
          static_cast<RunTime>(static_cast<double>(dt) * (pace_.machines - pace_.speed));
    }
    book(RunBucket::productive, done);
    book(RunBucket::degraded, dt - done);
  }
  /// Of that time, what the slowest part of the job costs, if it is one that is degraded.
  void charge_slowest(RunTime dt) {
    const auto slowest = std::ranges::max_element(pending_, {}, &Pending::slowdown);
    if (slowest == pending_.end() || c_.modes[slowest->mode].stops_job()) return;
    slowest->cost += static_cast<RunTime>(static_cast<double>(dt) * (1 - 1 / slowest->slowdown));
  }
  /// Books what a degraded part has cost.
  void mend(const Pending& part) {
    if (c_.modes[part.mode].stops_job()) return;
    out_.cost[part.mode] += part.cost;
    if (timeline_) out_.events.push_back({part.since, part.mode, part.cost});
  }
  /// The clock moves as time is booked: that is why the books balance.
  void book(RunBucket bucket, RunTime dt) {
    if (timeline_ && dt > 0) begin_phase(bucket);
    out_.buckets[at(bucket)] += dt;
    now_ += dt;
    if (++booked_ % kBookedPerLook == 0 && watch_) look();
  }
  void look() {
    if (!watch_(static_cast<double>(work_) / static_cast<double>(work_end_))) horizon_ = now_;
  }
  void begin_phase(RunBucket bucket) {
    if (out_.phases.empty() || out_.phases.back().bucket != bucket) {
      out_.phases.push_back({now_, bucket});
    }
  }
  /// What ran since then was for nothing.
  void lose_phases(RunTime since) {
    std::vector<RunPhase>& phases = out_.phases;
    std::size_t i = phases.size();
    while (i > 0 && phases[i - 1].begin >= since) --i;
    if (i > 0 && since < now_ && (i == phases.size() || phases[i].begin > since)) {
      phases.insert(phases.begin() + static_cast<std::ptrdiff_t>(i), {since, phases[i - 1].bucket});
    }
    std::size_t kept = i;
    for (; i < phases.size(); ++i) {
      RunPhase phase = phases[i];
      if (std::ranges::find(kRunning, phase.bucket) != kRunning.end()) {
        phase.bucket = RunBucket::lost;
      }
      if (kept > 0 && phases[kept - 1].bucket == phase.bucket) continue;
      phases[kept++] = phase;
    }
    phases.resize(kept);
  }

  /// Hours of nothing but training and checkpoints, booked at once: all but the last few periods
  /// before anything else is due. Same books as one by one.
  void skip_quiet_periods() {
    constexpr RunTime kLastOnes = 4;
    constexpr RunTime kKept = 64;  // of those skipped, evenly spread, to fall back to
    if (tiers_.size() != 1 || c_.tiers[0].drag > 0 || !pending_.empty() || speed() != 1) return;
    Tier& tier = tiers_[0];
    const RunTime interval = to_run_time(c_.tiers[0].interval);
    const RunTime blocks = to_run_time(c_.tiers[0].blocks);
    const RunTime finishes = to_run_time(c_.tiers[0].finishes);
    if (tier.next != now_ + interval || finishes > interval) return;
    const RunTime due = std::min({source_.next_at(), next_growth(), horizon_, pace_.until});
    const RunTime by_work = (work_end_ - work_) / interval;
    const RunTime periods = std::min((due - now_) / (interval + blocks), by_work) - kLastOnes;
    if (periods <= 0) return;
    for (RunTime begun = 0; begun < periods;) {
      const RunTime some = std::min(periods - begun, (periods + kKept - 1) / kKept);
      for (RunTime k = 0; k < (timeline_ ? some : 1); ++k) {
        const RunTime at_once = timeline_ ? 1 : some;
        book(RunBucket::productive, at_once * interval);
        book(RunBucket::checkpoint, at_once * blocks);
      }
      work_ += some * interval;
      keep_capture(tier, now_ - blocks, finishes);
      begun += some;
    }
    out_.checkpoints += static_cast<std::uint32_t>(periods);
    tier.next = now_ + interval;
  }

  // --- the site --------------------------------------------------------------------------------

  /// What the site gives from now on. True: it gave nothing, and time went by.
  bool meet_pace() {
    if (!pace_law_) pace_.until = kNever;
    if (now_ < pace_.until) return false;
    pace_ = pace_law_(now_);
    assert(pace_.until > now_);
    if (!pace_.down) return false;
    stand_without_power();
    return true;
  }
  /// Down, saved where there was a warning, until there is power again; then as after a failure.
  void stand_without_power() {
    const RunTime begin = now_;
    const RunTime lost_before = out_.buckets[at(RunBucket::lost)];
    if (!pace_.abrupt) save_all();
    ++out_.interruptions;
    ++out_.site_stops;
    const RunTime reads =
        roll_back(pace_.abrupt ? FailureScope::feed : FailureScope::process, kNever);
    while (now_ < horizon_) {
      while (pace_.down && now_ < horizon_) {
        sit_out(std::min(pace_.until, horizon_));
        if (now_ >= pace_.until) pace_ = pace_law_(now_);
      }
      if (now_ >= horizon_) break;
      if (phase(RunBucket::restart, c_.recovery.restarts) &&
          phase_ticks(RunBucket::restart, reads)) {
        break;
      }
      if (now_ < horizon_) meet(take_failure());
      break;
    }
    out_.site_stopped += now_ - begin + out_.buckets[at(RunBucket::lost)] - lost_before;
    for (std::size_t t = 0; t < tiers_.size(); ++t) {
      tiers_[t].next = now_ + to_run_time(c_.tiers[t].interval);
    }
  }
  /// What fails meanwhile stops nobody, and is mended before there is power again; a node that is
  /// taken away stays away.
  void sit_out(RunTime until) {
    while (source_.next_at() <= until) {
      const FailureSource::Failure failure = take_failure();
      ++out_.failures[failure.mode];
    }
    book(RunBucket::repair_wait, std::max<RunTime>(0, until - now_));
  }

  // --- checkpoints -----------------------------------------------------------------------------

  [[nodiscard]] bool finishing(const Tier& tier) const {
    return !tier.captures.empty() && tier.captures.back().whole > now_;
  }
  [[nodiscard]] RunTime next_checkpoint() const {
    RunTime next = kNever;
    for (const Tier& tier : tiers_) next = std::min(next, tier.next);
    return std::max(next, now_);
  }
  /// When a checkpoint that drags on the job is done.
  [[nodiscard]] RunTime next_whole() const {
    RunTime next = kNever;
    for (std::size_t t = 0; t < tiers_.size(); ++t) {
      if (c_.tiers[t].drag > 0 && finishing(tiers_[t])) {
        next = std::min(next, tiers_[t].captures.back().whole);
      }
    }
    return next;
  }
  void save_due() {
    for (std::size_t t = 0; t < tiers_.size(); ++t) {
      if (tiers_[t].next <= now_) save(t);
    }
  }
  void save(std::size_t t) {
    Tier& tier = tiers_[t];
    // One at a time: the next one waits for the one that is being written.
    if (finishing(tier) && !wait(tier.captures.back().whole - now_)) return;
    const RunTime begun = now_;
    if (!wait(to_run_time(c_.tiers[t].blocks))) return;
    keep_capture(tier, begun, to_run_time(c_.tiers[t].finishes));
    tier.next = now_ + to_run_time(c_.tiers[t].interval);
    ++out_.checkpoints;
  }

  void keep_capture(Tier& tier, RunTime begun, RunTime finishes) {
    constexpr std::size_t kMost = 4096;
    if (tier.captures.size() == kMost) {
      // Every second of the older half goes, as people thin out what they keep.
      for (std::size_t k = 1; k < kMost / 4; ++k) tier.captures[k] = tier.captures[2 * k];
      tier.captures.erase(tier.captures.begin() + kMost / 4, tier.captures.begin() + kMost / 2);
    }
    Capture capture{
        .work = work_, .taken = begun, .kept = now_, .whole = now_ + finishes, .running = {}};
    for (std::size_t b = 0; b < kRunning.size(); ++b) {
      capture.running[b] = out_.buckets[at(kRunning[b])];
    }
    tier.captures.push_back(capture);
  }

  // --- failures --------------------------------------------------------------------------------

  /// The next one. A node that is taken away is missing at once, whatever is found out when.
  FailureSource::Failure take_failure() {
    const FailureSource::Failure failure = source_.take();
    if (failure.back == 0) return failure;
    if (missing_nodes_ < c_.nodes) {
      ++missing_nodes_;
    } else {
      (void)pool_.take(1);
    }
    pool_.expect(failure.back);
    return failure;
  }
  void meet(const FailureSource::Failure& failure) {
    const FailureMode& mode = c_.modes[failure.mode];
    ++out_.failures[failure.mode];
    if (mode.effect == FailureEffect::slow || mode.effect == FailureEffect::silent ||
        !mode.stops_job()) {
      pending_.push_back({failure.mode, now_, now_ + to_run_time(stays(mode)),
                          mode.effect == FailureEffect::silent ? 1.0 : mode.slowdown});
      return;
    }
    if (mode.effect == FailureEffect::planned) save_all();
    stop(failure.mode, now_);
  }
  /// Waits for a checkpoint. False: the job stopped, or the run ended, on the way.
  bool wait(RunTime takes) {
    const RunTime end = std::min(now_ + takes, horizon_);
    const RunTime failure = source_.next_at();
    if (failure < end && stops(c_.modes[source_.next_mode()])) {
      book(RunBucket::checkpoint, std::max<RunTime>(0, failure - now_));
      return false;
    }
    book(RunBucket::checkpoint, end - now_);
    return now_ < horizon_;
  }
  /// How long what does not stop the job at once goes on; drawn.
  Seconds stays(const FailureMode& mode) {
    return (mode.stops_job() ? mode.found_after : mode.lasts) * discovery_.exponential();
  }
  static bool stops(const FailureMode& mode) {
    return mode.effect == FailureEffect::crash || mode.effect == FailureEffect::hang;
  }
  void save_all() {
    for (std::size_t t = 0; t < tiers_.size(); ++t) save(t);
    for (Tier& tier : tiers_) {
      if (finishing(tier) && !wait(tier.captures.back().whole - now_)) return;
    }
  }

  [[nodiscard]] RunTime next_found() const {
    RunTime next = kNever;
    for (const Pending& p : pending_) next = std::min(next, p.found);
    return std::max(next, now_);
  }
  /// A straggler is evicted after a checkpoint; wrong numbers are thrown away; a degraded part is
  /// mended, and the job never stands still for it.
  void find_pending() {
    const auto found = std::ranges::min_element(pending_, {}, &Pending::found);
    const Pending p = *found;
    pending_.erase(found);
    if (!c_.modes[p.mode].stops_job()) return mend(p);
    if (c_.modes[p.mode].effect == FailureEffect::slow) save_all();
    stop(p.mode, p.since);
  }

  /// The job stands still. Back to the newest checkpoint that helps, then again through every
  /// phase; what fails meanwhile sends it back to the first.
  void stop(std::uint32_t mode, RunTime sound_until) {
    const RunTime begin = now_;
    const RunTime lost_before = out_.buckets[at(RunBucket::lost)];
    ++out_.interruptions;
    std::uint32_t cause = mode;
    while (true) {
      // Wrong numbers are older than their discovery; other failures spoil nothing.
      const bool silent = c_.modes[cause].effect == FailureEffect::silent;
      const RunTime reads = roll_back(c_.modes[cause].scope, silent ? sound_until : kNever);
      if (recover(cause, reads) || now_ >= horizon_) break;
      const FailureSource::Failure next = take_failure();
      ++out_.failures[next.mode];
      cause = next.mode;
    }
    const RunTime lost = out_.buckets[at(RunBucket::lost)] - lost_before;
    out_.cost[mode] += now_ - begin + lost;
    if (timeline_) out_.events.push_back({begin, mode, now_ - begin + lost});
    for (std::size_t t = 0; t < tiers_.size(); ++t) {
      tiers_[t].next = now_ + to_run_time(c_.tiers[t].interval);
    }
  }

  /// Every phase of a recovery. False: something failed, or the run ended, on the way.
  bool recover(std::uint32_t cause, RunTime reads) {
    const FailureMode& mode = c_.modes[cause];
    const bool watched = mode.effect == FailureEffect::hang;
    const bool known = mode.effect != FailureEffect::crash && !watched;
    if (!known && !phase(RunBucket::detection,
                         watched ? c_.recovery.detects_hang : c_.recovery.detects_crash)) {
      return false;
    }
    if (mode.effect != FailureEffect::planned &&
        !phase(RunBucket::diagnosis, c_.recovery.diagnoses)) {
      return false;
    }
    if (!replace_nodes(mode)) return false;
    if (!phase(RunBucket::restart, c_.recovery.restarts)) return false;
    if (!phase_ticks(RunBucket::restart, reads)) return false;
    // The bad node was not the one that was taken out.
    while (mode.replaced > 0 && mode.scope == FailureScope::node &&
           diagnosis_.uniform() < c_.recovery.misdiagnosed) {
      if (!phase(RunBucket::detection, c_.recovery.detects_crash) ||
          !phase(RunBucket::diagnosis, c_.recovery.diagnoses) || !replace_nodes(mode) ||
          !phase(RunBucket::restart, c_.recovery.restarts) ||
          !phase_ticks(RunBucket::restart, reads)) {
        return false;
      }
    }
    return true;
  }
  bool phase(RunBucket bucket, Seconds takes) { return phase_ticks(bucket, to_run_time(takes)); }
  /// Books it up to the next failure that matters while nobody trains.
  bool phase_ticks(RunBucket bucket, RunTime takes) {
    const RunTime end = now_ + takes;
    while (true) {
      const RunTime failure = source_.next_at();
      if (failure > end || failure > horizon_) break;
      book(bucket, std::max<RunTime>(0, failure - now_));
      const FailureMode& mode = c_.modes[source_.next_mode()];
      if (stops(mode)) return false;
      // Nobody trains: wrong numbers hurt nobody, and maintenance is done meanwhile.
      const FailureSource::Failure skipped = source_.take();
      ++out_.failures[skipped.mode];
      if (!mode.stops_job()) {
        pending_.push_back({skipped.mode, now_, now_ + to_run_time(stays(mode)), mode.slowdown});
      }
      if (mode.effect == FailureEffect::slow) {
        pending_.push_back({skipped.mode, now_,
                            end + to_run_time(mode.found_after * discovery_.exponential()),
                            mode.slowdown});
      }
    }
    book(bucket, std::min(end, horizon_) - now_);
    return now_ < horizon_;
  }
  /// Takes broken nodes out and finds others; waits if it has to.
  bool replace_nodes(const FailureMode& mode) {
    if (mode.scope != FailureScope::process && replaced_.uniform() < mode.replaced) {
      const int broken =
          std::min(c_.scope_nodes[static_cast<std::size_t>(mode.scope)], c_.nodes - missing_nodes_);
      if (broken > 0) pool_.send_to_repair(now_, broken);
      missing_nodes_ += broken;
    }
    return fill_places();
  }
  /// That cannot run without these nodes, however the others are put together.
  [[nodiscard]] int replicas_of(int nodes) const {
    const int whole = (nodes + c_.nodes_per_replica - 1) / c_.nodes_per_replica;
    return whole * c_.replicas_per_node;
  }
  bool fill_places() {
    while (true) {
      pool_.collect(now_);
      const SparePool::Taken taken = pool_.take(missing_nodes_);
      missing_nodes_ -= taken.hot + taken.warm;
      if (taken.warm > 0 && !phase(RunBucket::restart, c_.spares.warm_takes)) return false;
      missing_replicas_ = replicas_of(missing_nodes_);
      if (missing_replicas_ < static_cast<int>(c_.width_speed.size())) return true;
      // A node may have come back while a warm one was fetched.
      const RunTime back = std::max(pool_.next_back(), now_);
      assert(back != kNever);
      if (!phase_ticks(RunBucket::repair_wait, back - now_)) return false;
    }
  }

  /// When enough nodes are back for a replica more.
  [[nodiscard]] RunTime next_growth() const {
    return missing_nodes_ > 0 ? std::max(pool_.next_back(), now_) : kNever;
  }
  /// The job saves, restarts with more replicas and goes on: nothing is lost.
  void grow() {
    pool_.collect(now_);
    const int places = missing_nodes_ - std::min(missing_nodes_, pool_.ready());
    if (replicas_of(places) == missing_replicas_) {
      const SparePool::Taken taken = pool_.take(missing_nodes_);
      missing_nodes_ -= taken.hot + taken.warm;
      return;
    }
    save_all();
    const RunTime reads = roll_back(FailureScope::process, kNever);
    if (fill_places() && phase(RunBucket::restart, c_.recovery.restarts)) {
      (void)phase_ticks(RunBucket::restart, reads);
    }
  }

  /// Throws away what was done since the newest checkpoint that can be read; returns how long
  /// reading it takes. None: the run begins anew.
  RunTime roll_back(FailureScope scope, RunTime sound_until) {
    for (std::size_t t = 0; t < tiers_.size(); ++t) {
      const CheckpointTier& spec = c_.tiers[t];
      std::vector<Capture>& captures = tiers_[t].captures;
      while (!captures.empty() && captures.back().whole > now_) captures.pop_back();
      const bool gone = (scope == FailureScope::node && !spec.survives_node) ||
                        (scope > FailureScope::node && !spec.survives_rack);
      if (gone) captures.clear();
    }
    while (true) {
      std::optional<std::size_t> best;
      for (std::size_t t = 0; t < tiers_.size(); ++t) {
        std::vector<Capture>& captures = tiers_[t].captures;
        while (!captures.empty() && captures.back().taken > sound_until) {
          captures.pop_back();
          ++out_.fallbacks;
        }
        if (captures.empty()) continue;
        if (!best || better(t, *best)) best = t;
      }
      if (!best) {
        restore({});
        forget_later(0);
        return 0;
      }
      Tier& tier = tiers_[*best];
      if (c_.tiers[*best].corrupt > 0 && corrupt_.uniform() < c_.tiers[*best].corrupt) {
        tier.captures.pop_back();
        ++out_.fallbacks;
        continue;
      }
      restore(tier.captures.back());
      forget_later(tier.captures.back().work);
      return to_run_time(c_.tiers[*best].restores);
    }
  }
  /// Newer work, or as new and sooner read.
  [[nodiscard]] bool better(std::size_t a, std::size_t b) const {
    const RunTime work_a = tiers_[a].captures.back().work, work_b = tiers_[b].captures.back().work;
    if (work_a != work_b) return work_a > work_b;
    return c_.tiers[a].restores < c_.tiers[b].restores;
  }
  void restore(const Capture& capture) {
    if (timeline_) lose_phases(capture.kept);
    for (std::size_t b = 0; b < kRunning.size(); ++b) {
      RunTime& running = out_.buckets[at(kRunning[b])];
      out_.buckets[at(RunBucket::lost)] += running - capture.running[b];
      running = capture.running[b];
    }
    work_ = capture.work;
    // Wrong numbers of later are gone with the work.
    std::erase_if(pending_, [&](const Pending& p) {
      return c_.modes[p.mode].effect == FailureEffect::silent && p.since >= capture.taken;
    });
  }
  /// After restore(). Of the same work another tier may have a later checkpoint: time between the
  /// two is lost, and restoring that one does not bring it back.
  void forget_later(RunTime work) {
    for (Tier& tier : tiers_) {
      std::vector<Capture>& captures = tier.captures;
      while (!captures.empty() && captures.back().work > work) captures.pop_back();
      for (auto c = captures.rbegin(); c != captures.rend() && c->work == work; ++c) {
        for (std::size_t b = 0; b < kRunning.size(); ++b) {
          c->running[b] = std::min(c->running[b], out_.buckets[at(kRunning[b])]);
        }
      }
    }
  }

  const Campaign& c_;
  const TrajectoryWatch& watch_;
  std::uint64_t booked_ = 0;
  std::uint32_t number_;
  RunTime work_end_, horizon_;
  bool timeline_;
  FailureSource source_;
  SparePool pool_;
  RandomStream replaced_, corrupt_, discovery_, diagnosis_;
  std::vector<Tier> tiers_;
  std::vector<Pending> pending_;
  PaceLaw pace_law_;
  SitePace pace_{.until = 0};
  RunTime now_ = 0;
  RunTime work_ = 0;
  int missing_nodes_ = 0;
  int missing_replicas_ = 0;
  TrajectoryResult out_;
};

}  // namespace

TrajectoryResult run_trajectory(const Campaign& campaign, std::uint32_t number, RunDetail detail,
                                const TrajectoryWatch& watch) {
  return Trajectory(campaign, number, detail, watch).run();
}

}  // namespace lockstep
