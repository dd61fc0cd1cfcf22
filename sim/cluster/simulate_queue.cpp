#include "sim/cluster/simulate_queue.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <limits>
#include <utility>

#include "models/base/input_error.hpp"
#include "sim/cluster/cluster_queue_pass.hpp"
#include "sim/cluster/elastic_widths.hpp"
#include "sim/cluster/job_speeds.hpp"
#include "sim/cluster/node_failures.hpp"
#include "sim/cluster/node_upkeep.hpp"
#include "sim/cluster/queue_pass.hpp"
#include "sim/cluster/recorded_starts.hpp"
#include "sim/cluster/reservations.hpp"
#include "sim/cluster/slurm_scheduler.hpp"
#include "sim/cluster/time_bins.hpp"
#include "sim/scenario/queue_policy_extension.hpp"

namespace lockstep {
namespace {

constexpr RunTime kNothing = std::numeric_limits<RunTime>::max();
constexpr std::size_t kInstantsBetweenCalls = 1024;

/// For how long cycles alone may go on. Usage has decayed to nothing after 60 half-lives; whatever
/// else can start without a change starts in the next passes.
RunTime patience_of(const QueueSpec& spec) {
  constexpr int kHalfLives = 60, kPasses = 4;
  const auto limits_time = [](const auto& of) { return of.limits.grp_gpu_s >= 0; };
  const bool decays =
      spec.priorities.half_life > 0 && (std::ranges::any_of(spec.qos, limits_time) ||
                                        std::ranges::any_of(spec.associations, limits_time));
  const RunTime passes =
      kPasses * std::max({spec.slurm.sched_interval, spec.slurm.bf_interval,
                          spec.priorities.calc_period, spec.auction, spec.elastic.every});
  return decays ? std::max(passes, kHalfLives * spec.priorities.half_life) : passes;
}

/// From auction to auction, from choice of widths to choice; 0: there are none, or at every change.
RunTime round_of(const QueueSpec& spec) {
  if (spec.order == QueueOrder::themis) return spec.auction;
  return spec.elastic.policy == ElasticPolicy::goodput ? spec.elastic.every : 0;
}

/// Everything that goes on beside each other, from instant to instant.
class QueueRun {
 public:
  QueueRun(const QueueSpec& spec, const QueueOptions& options)
      : spec_(&spec),
        state_(spec, options.keep_spans || !spec.recorded.empty()),
        failures_(spec.failures, spec.cluster.nodes, spec.seed, spec.breaks, spec.health.lemons),
        upkeep_(spec, failures_),
        slurm_(spec.slurm),
        speeds_(spec),
        recorded_(spec, options.recorded_until),
        last_change_(spec.slurm.opens),
        patience_(patience_of(spec)),
        round_(round_of(spec)) {
    result_.jobs.resize(spec.jobs.size());
    if (spec.placement.across == AcrossNodes::least_contended) {
      state_.set_link_loads([this] { return &speeds_.link_loads(state_); });
    }
    if (options.watch) watch_.emplace(*options.watch);
  }

  void run(const QueueOptions& options) {
    const std::size_t all = spec_->jobs.size();
    for (std::size_t instant = 0; state_.done() < all; ++instant) {
      const RunTime at = next();
      if (at == kNothing) break;
      if (spec_->until > 0 && at >= spec_->until) break;
      step(at);
      if (instant % kInstantsBetweenCalls == 0 && options.go_on &&
          !options.go_on(state_.done(), all)) {
        result_.stopped = true;
        break;
      }
    }
    if (spec_->until > 0 && !result_.stopped) pass_time(std::max(spec_->until, state_.now()));
  }

  QueueResult close() {
    state_.close_books();
    if (watch_) {
      watch_->note(state_);
      result_.waits = watch_->spans();
    }
    for (std::size_t j = 0; j < result_.jobs.size(); ++j) {
      const JobState& s = state_.state(static_cast<std::uint32_t>(j));
      JobOutcome& out = result_.jobs[j];
      if (state_.campaigns().used()) {
        out.submitted = state_.campaigns().submitted_at(static_cast<std::uint32_t>(j));
      }
      out.start = s.first_start;
      out.end = s.cancelled ? -1 : s.ended;
      out.waited = s.waited;
      out.waits = s.phase == JobPhase::pending || s.phase == JobPhase::kept;
      out.evictions = s.evictions;
      out.resizes = s.resizes;
      if (spec_->jobs[j].widths > 0) out.elastic_held = s.held_time;
      const auto rented = state_.rented().held_time().find(static_cast<std::uint32_t>(j));
      if (rented != state_.rented().held_time().end()) out.rented = rented->second;
      result_.resizes += s.resizes;
      out.failures = s.failures;
      out.suspended = s.suspended;
      out.suspensions = s.suspensions;
      out.is_suspended = s.phase == JobPhase::suspended;
      result_.suspensions += s.suspensions;
      out.slowed = s.slowed;
      out.most_done = spec_->jobs[j].runs - s.left_least;
      out.cancelled = s.cancelled ? s.ended : -1;
      out.stopped = s.stopped;
      result_.evictions += s.evictions;
    }
    result_.spans = state_.take_spans();
    result_.end = state_.now();
    result_.books = state_.books();
    result_.held = state_.held_time();
    result_.given = state_.given_time();
    result_.account_held = state_.account_time();
    result_.license_held = state_.license_time();
    if (upkeep_.used()) result_.health = upkeep_.counts();
    if (spec_->burst) result_.burst = state_.rented().counts();
    result_.groups_simulated = speeds_.simulated();
    result_.backfilled = slurm_.backfilled();
    result_.series = {.bin_s = to_seconds(held_.bin()).base_units(),
                      .held_gpus = held_.means(),
                      .broken_gpus = broken_.means(),
                      .drained_gpus = drained_.means(),
                      .waiting_jobs = waiting_jobs_.means(),
                      .waiting_gpus = waiting_gpus_.means(),
                      .facility_w = drawn_.means(),
                      .rented_gpus = rented_.means()};
    return std::move(result_);
  }

 private:
  [[nodiscard]] bool is_slurm() const { return spec_->admission == QueueAdmission::slurm; }

  /// The next time at which something happens beside cycles and reckonings, which by themselves
  /// change nothing for long.
  [[nodiscard]] RunTime next_change() const {
    RunTime at = kNothing;
    const bool more = submitted_ < spec_->jobs.size();
    if (more) at = spec_->jobs[submitted_].submit;
    if (!state_.ends().empty()) at = std::min(at, state_.ends().top().key);
    return std::min({at, state_.next_level(), failures_.next_at(), upkeep_.next_at(),
                     state_.next_rule(), recorded_.next_at(state_.now())});
  }

  RunTime next() {
    const RunTime change = change_ = next_change();
    RunTime cycle = state_.priorities().next_at();
    if (is_slurm() && state_.waiting().size() > 0) cycle = std::min(cycle, slurm_.next());
    const bool any = state_.waiting().size() > 0 || !state_.ends().empty();
    if (round_ > 0 && any) cycle = std::min(cycle, next_round_);
    // Jobs that wait for what never comes do not keep the clock running.
    const bool for_ever = change == kNothing && cycle > last_change_ + patience_;
    return std::max(for_ever ? change : std::min(change, cycle), state_.now());
  }

  void pass_time(RunTime to) {
    held_.until(to, static_cast<double>(state_.held_gpus()));
    broken_.until(to, static_cast<double>(state_.broken_gpus()));
    if (state_.rented().used()) {
      rented_.until(to, static_cast<double>(state_.rented().rented_gpus()));
    }
    if (upkeep_.used()) drained_.until(to, static_cast<double>(state_.drained_gpus()));
    waiting_jobs_.until(to, static_cast<double>(state_.waiting().size()));
    waiting_gpus_.until(to, static_cast<double>(state_.waiting().gpus()));
    if (spec_->power && to > state_.now()) {
      const Watts drawn = state_.drawn();
      drawn_.until(to, drawn.base_units());
      result_.most_drawn = std::max(result_.most_drawn, drawn);
    }
    state_.advance(to);
  }

  void step(RunTime at) {
    const bool changes = change_ <= at;
    if (changes) last_change_ = at;
    pass_time(at);
    state_.fall_levels();
    state_.end_exemptions();
    while (!state_.ends().empty() && state_.ends().top().key <= at) {
      state_.finish(state_.ends().top().index);
    }
    state_.apply_rules();
    state_.reckon_priorities();
    while (submitted_ < spec_->jobs.size() && spec_->jobs[submitted_].submit <= at) {
      const auto j = static_cast<std::uint32_t>(submitted_++);
      state_.submit(j);
      if (spec_->preemption.mode == PreemptionMode::replan) replan_.submitted(j);
    }
    upkeep_.run(state_);
    while (failures_.next_at() <= at) break_or_mend(failures_.take());
    state_.open_gates();
    for (const std::uint32_t j : state_.take_going_on()) {
      if (spec_->preemption.mode == PreemptionMode::replan) replan_.submitted(j);
    }
    state_.resume_suspended();
    is_round_ = round_ > 0 && at >= next_round_;
    if (is_round_) {
      next_round_ = (at / round_ + 1) * round_;
      state_.reckon_fairness();
    }
    start_jobs(changes);
    state_.burst();
    if (spec_->elastic.policy == ElasticPolicy::shrink) grow_back(state_);
    upkeep_.take_emptied(state_);
    speeds_.update(state_);
    if (watch_) watch_->note(state_);
  }

  void break_or_mend(const NodeFailureSource::Event& event) {
    if (upkeep_.used()) {
      const bool hit = upkeep_.fail_or_mend(state_, event);
      if (hit && event.breaks) ++result_.node_failures;
      return;
    }
    if (!event.breaks) return state_.mend(event.node);
    ++result_.node_failures;
    state_.fail(event.node, event.stays_broken);
  }

  void start_jobs(bool something_changed) {
    if (recorded_.until() > 0 && state_.now() <= recorded_.until()) recorded_.run(state_);
    if (state_.now() < recorded_.until()) return;
    if (spec_->preemption.mode == PreemptionMode::replan) {
      // Between auctions nobody loses its GPUs, and those that are free go by the last one.
      const bool leased = spec_->order == QueueOrder::themis && !is_round_;
      return leased ? start_in_order(state_) : replan_.run(state_);
    }
    if (spec_->elastic.policy == ElasticPolicy::goodput) {
      if (round_ == 0 || is_round_) give_widths(state_);
      return;
    }
    if (is_extension(spec_->admission)) return start_by_extension(state_);
    switch (spec_->admission) {
      case QueueAdmission::strict:
      case QueueAdmission::best_effort:
        return start_in_order(state_);
      case QueueAdmission::easy:
        return start_easy(state_);
      case QueueAdmission::conservative:
        return conservative_.run(state_);
      case QueueAdmission::kueue:
        return cluster_queues_.run(state_);
      case QueueAdmission::slurm:
        if (something_changed && slurm_.next() > state_.now()) {
          slurm_.something_changed(state_.now());
        }
        while (slurm_.next() <= state_.now()) slurm_.run(state_);
    }
  }

  const QueueSpec* spec_;
  QueueState state_;
  NodeFailureSource failures_;
  NodeUpkeep upkeep_;
  SlurmScheduler slurm_;
  ConservativePass conservative_;
  ClusterQueuePass cluster_queues_;
  ReplanPass replan_;
  JobSpeeds speeds_;
  RecordedStarts recorded_;
  std::optional<WaitWatch> watch_;
  std::size_t submitted_ = 0;
  RunTime change_ = 0;  ///< the next one, as next() found it
  RunTime last_change_;
  RunTime patience_;
  RunTime round_;
  RunTime next_round_ = 0;
  bool is_round_ = false;
  TimeBins held_, broken_, drained_, rented_, waiting_jobs_, waiting_gpus_, drawn_;
  QueueResult result_;
};

/// Nothing where somebody stops it.
std::optional<WithoutBursts> without_bursts(QueueSpec spec, QueueOptions options) {
  spec.burst.reset();
  options.watch.reset();
  options.keep_spans = false;
  QueueRun run(spec, options);
  run.run(options);
  const QueueResult result = run.close();
  if (result.stopped) return std::nullopt;
  WithoutBursts out;
  double waits = 0, completions = 0;
  std::size_t waited = 0, ended = 0;
  for (std::size_t j = 0; j < spec.jobs.size(); ++j) {
    const JobOutcome& of = result.jobs[j];
    out.waiting += of.waits ? 1 : 0;
    if (counts_wait(of)) {
      waits += to_seconds(of.waited).base_units();
      ++waited;
    }
    if (of.end < 0) continue;
    const RunTime submitted = of.submitted >= 0 ? of.submitted : spec.jobs[j].submit;
    completions += to_seconds(of.end - submitted).base_units();
    ++ended;
  }
  if (waited > 0) out.wait_mean_s = waits / static_cast<double>(waited);
  if (ended > 0) out.completion_mean_s = completions / static_cast<double>(ended);
  return out;
}

/// A job that alone would draw too much would wait for ever.
void check_cap(const QueueSpec& spec) {
  if (!spec.power_cap) return;
  const QueueDraws draws(spec);
  Watts most;
  std::size_t widest = 0;
  for (std::size_t j = 0; j < spec.jobs.size(); ++j) {
    const QueueJob& job = spec.jobs[j];
    const Watts draw =
        draws.facility(job.gpus * draws.microwatts(job), spec.cluster.gpus() - job.gpus);
    if (draw <= most) continue;
    most = draw;
    widest = j;
  }
  if (most <= *spec.power_cap) return;
  throw InputError(
      {.file = spec.file,
       .pointer = "/queue/power_cap",
       .found = format_quantity(spec.power_cap->base_units(), Dimension::power),
       .allowed =
           fmt::format("at least {}, which the site draws while job {} runs alone",
                       format_quantity(most.base_units(), Dimension::power), spec.job_name(widest)),
       .nearest = {}});
}

}  // namespace

QueueResult simulate_queue(const QueueSpec& spec, const QueueOptions& options) {
  check_cap(spec);
  const bool twice = options.without_bursts && spec.burst && spec.burst->nodes > 0;
  // Two runs of the same jobs count as one of twice as many.
  const auto part_of = [&](std::size_t before) {
    QueueOptions out = options;
    if (twice && options.go_on) {
      out.go_on = [&options, before](std::size_t ended, std::size_t all) {
        return options.go_on(before + ended, 2 * all);
      };
    }
    return out;
  };
  const QueueOptions first = part_of(0);
  QueueRun run(spec, first);
  run.run(first);
  QueueResult result = run.close();
  if (twice && !result.stopped) {
    result.unburst = without_bursts(spec, part_of(spec.jobs.size()));
  }
  return result;
}

}  // namespace lockstep
