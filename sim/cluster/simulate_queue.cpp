#include "sim/cluster/simulate_queue.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "sim/cluster/job_speeds.hpp"
#include "sim/cluster/node_failures.hpp"
#include "sim/cluster/queue_pass.hpp"
#include "sim/cluster/reservations.hpp"
#include "sim/cluster/slurm_scheduler.hpp"
#include "sim/cluster/time_bins.hpp"

namespace lockstep {
namespace {

constexpr RunTime kNothing = std::numeric_limits<RunTime>::max();
constexpr std::size_t kInstantsBetweenCalls = 1024;

/// Everything that goes on beside each other, from instant to instant.
class QueueRun {
 public:
  QueueRun(const QueueSpec& spec, const QueueOptions& options)
      : spec_(&spec),
        state_(spec, options.keep_spans || !spec.recorded.empty()),
        failures_(spec.failures, spec.cluster.nodes, spec.seed),
        slurm_(spec.slurm),
        speeds_(spec) {
    result_.jobs.resize(spec.jobs.size());
    if (options.watch) watch_.emplace(*options.watch);
  }

  void run(const QueueOptions& options) {
    const std::size_t all = spec_->jobs.size();
    for (std::size_t instant = 0; ended_ < all; ++instant) {
      const RunTime at = next();
      if (at == kNothing) break;
      if (spec_->until > 0 && at >= spec_->until) break;
      step(at);
      if (instant % kInstantsBetweenCalls == 0 && options.go_on && !options.go_on(ended_, all)) {
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
      out.start = s.first_start;
      out.end = s.ended;
      out.waited = s.waited;
      out.evictions = s.evictions;
      out.failures = s.failures;
      out.slowed = s.slowed;
      result_.evictions += s.evictions;
    }
    result_.spans = state_.take_spans();
    result_.end = state_.now();
    result_.books = state_.books();
    result_.held = state_.held_time();
    result_.account_held = state_.account_time();
    result_.groups_simulated = speeds_.simulated();
    result_.backfilled = slurm_.backfilled();
    result_.series = {.bin_s = to_seconds(held_.bin()).base_units(),
                      .held_gpus = held_.means(),
                      .broken_gpus = broken_.means(),
                      .waiting_jobs = waiting_jobs_.means(),
                      .waiting_gpus = waiting_gpus_.means()};
    return std::move(result_);
  }

 private:
  [[nodiscard]] bool is_slurm() const { return spec_->admission == QueueAdmission::slurm; }

  [[nodiscard]] RunTime next() const {
    RunTime at = kNothing;
    const bool more = submitted_ < spec_->jobs.size();
    if (more) at = spec_->jobs[submitted_].submit;
    if (!state_.ends().empty()) at = std::min(at, state_.ends().top().key);
    at = std::min({at, state_.next_level(), failures_.next_at()});
    if (is_slurm() && state_.waiting().size() > 0) at = std::min(at, slurm_.next());
    return std::max(at, state_.now());
  }

  void pass_time(RunTime to) {
    held_.until(to, static_cast<double>(state_.held_gpus()));
    broken_.until(to, static_cast<double>(state_.broken_gpus()));
    waiting_jobs_.until(to, static_cast<double>(state_.waiting().size()));
    waiting_gpus_.until(to, static_cast<double>(state_.waiting().gpus()));
    state_.advance(to);
  }

  void step(RunTime at) {
    pass_time(at);
    state_.fall_levels();
    state_.end_exemptions();
    while (!state_.ends().empty() && state_.ends().top().key <= at) {
      state_.finish(state_.ends().top().index);
      ++ended_;
    }
    while (submitted_ < spec_->jobs.size() && spec_->jobs[submitted_].submit <= at) {
      const auto j = static_cast<std::uint32_t>(submitted_++);
      state_.submit(j);
      if (spec_->preemption.mode == PreemptionMode::replan) replan_.submitted(j);
    }
    while (failures_.next_at() <= at) break_or_mend(failures_.take());
    start_jobs();
    speeds_.update(state_);
    if (watch_) watch_->note(state_);
  }

  void break_or_mend(const NodeFailureSource::Event& event) {
    if (!event.breaks) return state_.mend(event.node);
    ++result_.node_failures;
    state_.fail(event.node, event.stays_broken);
  }

  void start_jobs() {
    if (spec_->preemption.mode == PreemptionMode::replan) return replan_.run(state_);
    switch (spec_->admission) {
      case QueueAdmission::strict:
      case QueueAdmission::best_effort:
        return start_in_order(state_);
      case QueueAdmission::easy:
        return start_easy(state_);
      case QueueAdmission::conservative:
        return conservative_.run(state_);
      case QueueAdmission::slurm:
        if (slurm_.next() > state_.now()) slurm_.something_changed(state_.now());
        while (slurm_.next() <= state_.now()) slurm_.run(state_);
    }
  }

  const QueueSpec* spec_;
  QueueState state_;
  NodeFailureSource failures_;
  SlurmScheduler slurm_;
  ConservativePass conservative_;
  ReplanPass replan_;
  JobSpeeds speeds_;
  std::optional<WaitWatch> watch_;
  std::size_t submitted_ = 0, ended_ = 0;
  TimeBins held_, broken_, waiting_jobs_, waiting_gpus_;
  QueueResult result_;
};

}  // namespace

QueueResult simulate_queue(const QueueSpec& spec, const QueueOptions& options) {
  QueueRun run(spec, options);
  run.run(options);
  return run.close();
}

}  // namespace lockstep
