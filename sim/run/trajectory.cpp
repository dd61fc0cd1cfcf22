#include "sim/run/trajectory.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <utility>

#include "sim/run/failure_source.hpp"
#include "sim/run/job_places.hpp"
#include "sim/run/pending_faults.hpp"
#include "sim/run/run_books.hpp"
#include "sim/run/run_checkpoints.hpp"

namespace lockstep {
namespace {

constexpr RunTime kNever = FailureSource::kNever;

/// What the site lets the job have: asked for when that is over, and where a stop gives back what
/// it saves, after each.
class GivenPace {
 public:
  explicit GivenPace(PaceLaw law) : law_(std::move(law)) {
    if (!law_) pace_.until = kNever;
  }

  [[nodiscard]] const SitePace& now() const { return pace_; }
  [[nodiscard]] bool is_asked_for(RunTime now) const {
    return now >= pace_.until || (pace_.gives_back && stopped_);
  }
  void ask(RunBooks& books) {
    pace_ = law_(books.now, books.stops);
    books.keeps_stops = pace_.gives_back;
    stopped_ = false;
    assert(pace_.until > books.now);
  }
  void end_stop() { stopped_ = true; }

 private:
  PaceLaw law_;
  SitePace pace_{.until = 0};
  bool stopped_ = false;  ///< since it was asked for
};

class Trajectory {
 public:
  Trajectory(const Campaign& campaign, std::uint32_t number, RunDetail detail,
             const TrajectoryWatch& watch)
      : c_(campaign),
        books_{.watch = watch,
               .work_end = to_run_time(campaign.work),
               .horizon = campaign.horizon > 0 ? campaign.horizon
                                               : kGivenUpAfter * to_run_time(campaign.work),
               .timeline = detail == RunDetail::timeline},
        source_(campaign, number, books_.horizon),
        replaced_(stream(number, RunDraw::replacement)),
        discovery_(stream(number, RunDraw::discovery)),
        diagnosis_(stream(number, RunDraw::diagnosis)),
        checkpoints_(campaign, books_, stream(number, RunDraw::corruption)),
        pending_(campaign.modes, books_),
        places_(campaign, number),
        pace_(campaign.pace ? campaign.pace(number) : PaceLaw{}) {
    books_.out.failures.resize(c_.modes.size());
    books_.out.cost.resize(c_.modes.size());
  }

  TrajectoryResult run() {
    while (books_.work < books_.work_end && books_.now < books_.horizon) {
      if (!meet_pace()) run_to_next();
    }
    pending_.mend_all();
    std::ranges::stable_sort(books_.out.events, {}, &RunEvent::at);
    books_.out.wall = books_.now;
    books_.out.work = books_.work;
    return std::move(books_.out);
  }

 private:
  [[nodiscard]] RandomStream stream(std::uint32_t number, RunDraw purpose) const {
    return RandomStream(
        {.seed = c_.seed, .trajectory = number, .component = 0, .purpose = purpose_of(purpose, 0)});
  }

  // --- while the job runs ----------------------------------------------------------------------

  void run_to_next() {
    skip_quiet_periods();
    const RunTime failure = source_.next_at();
    const RunTime until = std::min({failure, checkpoints_.next_due(), pending_.next_found(),
                                    checkpoints_.next_whole(), places_.next_growth(books_.now),
                                    books_.now + time_for(books_.work_end - books_.work),
                                    books_.horizon, pace_.now().until});
    advance(until);
    if (books_.now >= books_.horizon || books_.work >= books_.work_end) return;
    // One thing at a time, in an order that is the same everywhere.
    if (failure <= books_.now) {
      meet(take_failure());
    } else if (books_.now == pending_.next_found()) {
      find_pending();
    } else if (books_.now == checkpoints_.next_due()) {
      save_due();
    } else if (books_.now == places_.next_growth(books_.now)) {
      grow();
    }
  }

  /// Of the job's full speed.
  [[nodiscard]] double speed() const {
    return places_.speed() / pending_.slowest() * std::max(0.0, 1 - checkpoints_.drag()) *
           pace_.now().speed;
  }
  [[nodiscard]] RunTime time_for(RunTime work) const {
    const double rate = speed();
    if (rate == 1) return work;
    if (rate <= 0) return kNever / 4;
    return static_cast<RunTime>(std::ceil(static_cast<double>(work) / rate));
  }
  void advance(RunTime until) {
    const RunTime dt = until - books_.now;
    if (dt <= 0) return;
    const double rate = speed();
    const RunTime left = books_.work_end - books_.work;
    RunTime done = rate == 1 ? dt : static_cast<RunTime>(static_cast<double>(dt) * rate);
    if (done > left || dt >= time_for(left)) done = left;
    books_.work += done;
    pending_.charge_slowest(dt);
    if (pace_.now().machines < 1) {
      books_.out.machines_missing +=
          static_cast<RunTime>(static_cast<double>(dt) * (1 - pace_.now().machines));
    }
    if (pace_.now().speed < 1) {
      books_.out.site_slowed += static_cast<RunTime>(static_cast<double>(dt) *
                                                     (pace_.now().machines - pace_.now().speed));
    }
    books_.book(RunBucket::productive, done);
    books_.book(RunBucket::degraded, dt - done);
  }

  /// Hours of nothing but training and checkpoints, booked at once: all but the last few periods
  /// before anything else is due. Same books as one by one.
  void skip_quiet_periods() {
    constexpr RunTime kLastOnes = 4;
    constexpr RunTime kKept = 64;  // of those skipped, evenly spread, to fall back to
    if (checkpoints_.tiers() != 1 || c_.tiers[0].drag > 0 || c_.tiers[0].rule ||
        !pending_.empty() || speed() != 1) {
      return;
    }
    const RunTime interval = to_run_time(c_.tiers[0].interval);
    const RunTime blocks = to_run_time(c_.tiers[0].blocks);
    const RunTime finishes = to_run_time(c_.tiers[0].finishes);
    if (checkpoints_.next(0) != books_.now + interval || finishes > interval) return;
    const RunTime due = std::min(
        {source_.next_at(), places_.next_growth(books_.now), books_.horizon, pace_.now().until});
    const RunTime by_work = (books_.work_end - books_.work) / interval;
    const RunTime periods = std::min((due - books_.now) / (interval + blocks), by_work) - kLastOnes;
    if (periods <= 0) return;
    for (RunTime begun = 0; begun < periods;) {
      const RunTime some = std::min(periods - begun, (periods + kKept - 1) / kKept);
      for (RunTime k = 0; k < (books_.timeline ? some : 1); ++k) {
        const RunTime at_once = books_.timeline ? 1 : some;
        books_.book(RunBucket::productive, at_once * interval);
        books_.book(RunBucket::checkpoint, at_once * blocks);
      }
      books_.work += some * interval;
      checkpoints_.keep(0, books_.now - blocks);
      begun += some;
    }
    books_.out.checkpoints += static_cast<std::uint32_t>(periods);
    checkpoints_.begin_interval(0, books_.now);
  }

  // --- the site --------------------------------------------------------------------------------

  /// What the site gives from now on. True: it gave nothing, and time went by.
  bool meet_pace() {
    if (!pace_.is_asked_for(books_.now)) return false;
    pace_.ask(books_);
    if (!pace_.now().down) return false;
    stand_without_power();
    return true;
  }
  /// Down, saved where there was a warning, until there is power again; then as after a failure.
  void stand_without_power() {
    const RunTime begin = books_.now;
    const RunTime lost_before = books_.lost();
    if (!pace_.now().abrupt) save_all();
    ++books_.out.interruptions;
    ++books_.out.site_stops;
    const RunTime reads =
        roll_back(pace_.now().abrupt ? FailureScope::feed : FailureScope::process, kNever);
    while (books_.now < books_.horizon) {
      while (pace_.now().down && books_.now < books_.horizon) {
        sit_out(std::min(pace_.now().until, books_.horizon));
        if (books_.now >= pace_.now().until) pace_.ask(books_);
      }
      if (books_.now >= books_.horizon) break;
      if (phase(RunBucket::restart, c_.recovery.restarts) &&
          phase_ticks(RunBucket::restart, reads)) {
        break;
      }
      if (books_.now < books_.horizon) meet(take_failure());
      break;
    }
    pace_.end_stop();
    books_.out.site_stopped += books_.now - begin + books_.lost() - lost_before;
    checkpoints_.begin_intervals();
  }
  /// What fails meanwhile stops nobody, and is mended before there is power again; a node that is
  /// taken away stays away.
  void sit_out(RunTime until) {
    while (source_.next_at() <= until) {
      const FailureSource::Failure failure = take_failure();
      ++books_.out.failures[failure.mode];
    }
    books_.book(RunBucket::repair_wait, std::max<RunTime>(0, until - books_.now));
  }

  // --- checkpoints -----------------------------------------------------------------------------

  void save_due() {
    for (std::size_t t = 0; t < checkpoints_.tiers(); ++t) {
      if (checkpoints_.next(t) <= books_.now) save(t);
    }
  }
  void save(std::size_t t) {
    // One at a time: the next one waits for the one that is being written.
    if (checkpoints_.finishing(t) && !wait(checkpoints_.whole(t) - books_.now)) return;
    const RunTime begun = books_.now;
    if (!wait(to_run_time(c_.tiers[t].blocks))) return;
    checkpoints_.keep(t, begun);
    checkpoints_.begin_interval(t, books_.now);
    ++books_.out.checkpoints;
  }

  // --- failures --------------------------------------------------------------------------------

  /// The next one. A node that is taken away is missing at once, whatever is found out when.
  FailureSource::Failure take_failure() {
    const FailureSource::Failure failure = source_.take();
    if (failure.back == 0) return failure;
    places_.lose_node(failure.back);
    return failure;
  }
  void meet(const FailureSource::Failure& failure) {
    const FailureMode& mode = c_.modes[failure.mode];
    ++books_.out.failures[failure.mode];
    if (mode.effect == FailureEffect::slow || mode.effect == FailureEffect::silent ||
        !mode.stops_job()) {
      pending_.add(failure.mode, books_.now + to_run_time(stays(mode)),
                   mode.effect == FailureEffect::silent ? 1.0 : mode.slowdown);
      return;
    }
    if (mode.effect == FailureEffect::planned) save_all();
    stop(failure.mode, books_.now);
  }
  /// Waits for a checkpoint. False: the job stopped, or the run ended, on the way.
  bool wait(RunTime takes) {
    const RunTime end = std::min(books_.now + takes, books_.horizon);
    const RunTime failure = source_.next_at();
    if (failure < end && stops(c_.modes[source_.next_mode()])) {
      books_.book(RunBucket::checkpoint, std::max<RunTime>(0, failure - books_.now));
      return false;
    }
    books_.book(RunBucket::checkpoint, end - books_.now);
    return books_.now < books_.horizon;
  }
  /// How long what does not stop the job at once goes on; drawn.
  Seconds stays(const FailureMode& mode) {
    return (mode.stops_job() ? mode.found_after : mode.lasts) * discovery_.exponential();
  }
  static bool stops(const FailureMode& mode) {
    return mode.effect == FailureEffect::crash || mode.effect == FailureEffect::hang;
  }
  void save_all() {
    for (std::size_t t = 0; t < checkpoints_.tiers(); ++t) save(t);
    for (std::size_t t = 0; t < checkpoints_.tiers(); ++t) {
      if (checkpoints_.finishing(t) && !wait(checkpoints_.whole(t) - books_.now)) return;
    }
  }

  /// A straggler is evicted after a checkpoint; wrong numbers are thrown away; a degraded part is
  /// mended, and the job never stands still for it.
  void find_pending() {
    const PendingFaults::Fault p = pending_.take_found();
    if (!c_.modes[p.mode].stops_job()) return pending_.mend(p);
    if (c_.modes[p.mode].effect == FailureEffect::slow) save_all();
    stop(p.mode, p.since);
  }

  /// The job stands still. Back to the newest checkpoint that helps, then again through every
  /// phase; what fails meanwhile sends it back to the first.
  void stop(std::uint32_t mode, RunTime sound_until) {
    const RunTime begin = books_.now;
    const RunTime lost_before = books_.lost();
    ++books_.out.interruptions;
    std::uint32_t cause = mode;
    while (true) {
      // Wrong numbers are older than their discovery; other failures spoil nothing.
      const bool silent = c_.modes[cause].effect == FailureEffect::silent;
      const RunTime reads = roll_back(c_.modes[cause].scope, silent ? sound_until : kNever);
      if (recover(cause, reads) || books_.now >= books_.horizon) break;
      const FailureSource::Failure next = take_failure();
      ++books_.out.failures[next.mode];
      cause = next.mode;
    }
    pace_.end_stop();
    const RunTime lost = books_.lost() - lost_before;
    books_.out.cost[mode] += books_.now - begin + lost;
    if (books_.timeline) books_.out.events.push_back({begin, mode, books_.now - begin + lost});
    checkpoints_.begin_intervals();
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
    const RunTime end = books_.now + takes;
    while (true) {
      const RunTime failure = source_.next_at();
      if (failure > end || failure > books_.horizon) break;
      books_.book(bucket, std::max<RunTime>(0, failure - books_.now));
      const FailureMode& mode = c_.modes[source_.next_mode()];
      if (stops(mode)) return false;
      // Nobody trains: wrong numbers hurt nobody, and maintenance is done meanwhile.
      const FailureSource::Failure skipped = source_.take();
      ++books_.out.failures[skipped.mode];
      if (!mode.stops_job()) {
        pending_.add(skipped.mode, books_.now + to_run_time(stays(mode)), mode.slowdown);
      }
      if (mode.effect == FailureEffect::slow) {
        pending_.add(skipped.mode, end + to_run_time(mode.found_after * discovery_.exponential()),
                     mode.slowdown);
      }
    }
    books_.book(bucket, std::min(end, books_.horizon) - books_.now);
    return books_.now < books_.horizon;
  }
  /// Takes broken nodes out and finds others; waits if it has to.
  bool replace_nodes(const FailureMode& mode) {
    if (mode.scope != FailureScope::process && replaced_.uniform() < mode.replaced) {
      places_.send_to_repair(books_.now, mode.scope);
    }
    return fill_places();
  }
  bool fill_places() {
    while (true) {
      places_.collect(books_.now);
      if (places_.fill().warm > 0 && !phase(RunBucket::restart, c_.spares.warm_takes)) return false;
      if (places_.job_fits()) return true;
      // A node may have come back while a warm one was fetched.
      const RunTime back = std::max(places_.next_back(), books_.now);
      assert(back != kNever);
      if (!phase_ticks(RunBucket::repair_wait, back - books_.now)) return false;
    }
  }

  /// The job saves, restarts with more replicas and goes on: nothing is lost.
  void grow() {
    places_.collect(books_.now);
    if (!places_.has_another_replica()) {
      (void)places_.fill();
      return;
    }
    save_all();
    const RunTime reads = roll_back(FailureScope::process, kNever);
    if (fill_places() && phase(RunBucket::restart, c_.recovery.restarts)) {
      (void)phase_ticks(RunBucket::restart, reads);
    }
    pace_.end_stop();
  }

  /// Back to the newest checkpoint that helps; returns how long reading it takes.
  RunTime roll_back(FailureScope scope, RunTime sound_until) {
    const RunCheckpoints::RollBack to = checkpoints_.roll_back(scope, sound_until);
    // Wrong numbers of later are gone with the work.
    pending_.forget_wrong_numbers(to.taken);
    return to.reads;
  }

  const Campaign& c_;
  RunBooks books_;
  FailureSource source_;
  RandomStream replaced_, discovery_, diagnosis_;
  RunCheckpoints checkpoints_;
  PendingFaults pending_;
  JobPlaces places_;
  GivenPace pace_;
};

}  // namespace

TrajectoryResult run_trajectory(const Campaign& campaign, std::uint32_t number, RunDetail detail,
                                const TrajectoryWatch& watch) {
  return Trajectory(campaign, number, detail, watch).run();
}

}  // namespace lockstep
