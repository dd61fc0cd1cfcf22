#include "sim/search/evaluate_plan.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>
#include <utility>

#include "sim/core/random.hpp"
#include "sim/run/campaign_work.hpp"
#include "sim/search/plan_choice.hpp"

namespace lockstep {
namespace {

/// Trajectories behind each bar of the sensitivity that moves the run.
constexpr std::uint32_t kTrajectories = 24;
constexpr double kLowShare = 0.05, kHighShare = 0.95;  // the ends of a bar
/// Apart from the purposes of a run's own draws (sim/run/failure_source.hpp).
constexpr std::uint32_t kInputDraws = 0x504C414E;

/// Only these change how a run goes; the others change what it costs.
constexpr std::array kRunInputs{PlanInput::efficiency, PlanInput::failure_rate,
                                PlanInput::recovery};

bool changes_run(PlanInput input) {
  return std::ranges::find(kRunInputs, input) != kRunInputs.end();
}

/// Calls `work` for 0 to count - 1 on that many threads, until it or `options.progress` stops.
class Workers {
 public:
  explicit Workers(const PlanOptions& options)
      : options_(options), arena_(std::max(1, options.jobs)) {}

  template <class Work>
  void run(std::size_t count, Work work) {
    arena_.execute([&] {
      tbb::parallel_for(std::size_t{0}, count, [&](std::size_t i) {
        if (stopped_) return;
        work(i);
        if (!options_.progress) return;
        const std::scoped_lock lock(reporting_);
        report();
      });
    });
  }
  /// A piece of work that was done elsewhere.
  void report() {
    if (options_.progress && !options_.progress()) stopped_ = true;
  }
  [[nodiscard]] bool stopped() const { return stopped_; }

 private:
  const PlanOptions& options_;
  tbb::task_arena arena_;
  std::mutex reporting_;
  std::atomic<bool> stopped_{false};
};

PlanFactors medians(const PlanModel& model) {
  PlanFactors out;
  for (std::size_t i = 0; i < kPlanInputs; ++i) out[i] = model.inputs[i].median();
  return out;
}

/// Inputs of sample `number`: the same shares for all candidates.
PlanFactors drawn(const PlanSpec& spec, const PlanModel& model, std::uint32_t number) {
  PlanFactors out;
  for (std::size_t i = 0; i < kPlanInputs; ++i) {
    RandomStream stream({.seed = spec.seed,
                         .trajectory = number,
                         .component = static_cast<std::uint32_t>(i),
                         .purpose = kInputDraws});
    // The middle of one of 2^53 cells, as neither 0 nor 1 has a quantile.
    out[i] = model.inputs[i].quantile(stream.uniform() + 0x1p-54);
  }
  return out;
}

std::vector<TrajectoryResult> runs_of(const Campaign& campaign, const TrajectoryWatch& watch) {
  std::vector<TrajectoryResult> runs;
  runs.reserve(kTrajectories);
  for (std::uint32_t t = 0; t < kTrajectories; ++t) {
    runs.push_back(run_trajectory(campaign, t, RunDetail::sums, watch));
  }
  return runs;
}

/// Money by month, mean over the runs: it adds up to the mean of their money.
std::vector<PlanMonth> mean_months(const PlanModel& model, const std::vector<PlanOutcome>& outcomes,
                                   const PlanFactors& factors) {
  std::vector<PlanMonth> mean;
  const auto n = static_cast<double>(outcomes.size());
  for (const PlanOutcome& outcome : outcomes) {
    const std::vector<PlanMonth> months = plan_months(model, outcome, factors);
    mean.resize(std::max(mean.size(), months.size()));
    for (std::size_t m = 0; m < months.size(); ++m) {
      for (const auto part :
           {&PlanMonth::write_off_usd, &PlanMonth::running_usd, &PlanMonth::rent_usd,
            &PlanMonth::egress_usd, &PlanMonth::storage_usd}) {
        mean[m].*part += months[m].*part / n;
      }
    }
  }
  return mean;
}

/// One candidate: what is expected, both ends of each bar, the samples.
class CandidateWork {
 public:
  CandidateWork(const PlanSpec& spec, const PlanCandidate& candidate, PlanResult& result,
                TrajectoryWatch watch)
      : spec_(spec), candidate_(candidate), result_(result), watch_(std::move(watch)) {
    result_.swings.resize(kPlanInputs);
    result_.samples.resize(spec.samples);
  }

  /// Of all pieces.
  [[nodiscard]] double trajectories() const {
    return candidate_.run.trajectories + 2.0 * kRunInputs.size() * kTrajectories + spec_.samples;
  }
  [[nodiscard]] Seconds estimate() const {
    return trajectories() * trajectory_estimate(result_.model.plan.campaign);
  }

  static std::size_t pieces(const PlanSpec& spec) { return 1 + kRunInputs.size() + spec.samples; }

  void piece(std::size_t i) {
    if (i == 0) return expect();
    if (i <= kRunInputs.size()) return swing_run(kRunInputs[i - 1]);
    sample(i - 1 - kRunInputs.size());
  }

 private:
  [[nodiscard]] PlanOutcome outcome(const Campaign& campaign, const TrajectoryResult& run,
                                    const PlanFactors& factors) const {
    PlanOutcome out = outcome_of(candidate_, result_.model, run, factors);
    out.finished = run.work >= to_run_time(campaign.work);
    return out;
  }

  [[nodiscard]] std::vector<PlanOutcome> outcomes_of(const Campaign& campaign,
                                                     const std::vector<TrajectoryResult>& runs,
                                                     const PlanFactors& factors) const {
    std::vector<PlanOutcome> outcomes;
    outcomes.reserve(runs.size());
    for (const TrajectoryResult& run : runs) outcomes.push_back(outcome(campaign, run, factors));
    return outcomes;
  }
  [[nodiscard]] PlanOutcome mean_of(const Campaign& campaign,
                                    const std::vector<TrajectoryResult>& runs,
                                    const PlanFactors& factors) const {
    return mean_outcome(outcomes_of(campaign, runs, factors));
  }

  /// The expected outcome, and the bars of inputs that leave the runs as they are.
  /// The runs are those that `lockstep run` draws, so that both give the same answer.
  void expect() {
    const PlanFactors factors = medians(result_.model);
    const Campaign campaign = with_factors(result_.model.plan.campaign, factors);
    SampleOptions sampling;
    sampling.trajectories = static_cast<std::uint32_t>(candidate_.run.trajectories);
    sampling.within = candidate_.run.within;
    sampling.under_way = watch_;
    const std::vector<TrajectoryResult> runs = lockstep::sample(campaign, sampling);
    const std::vector<PlanOutcome> outcomes = outcomes_of(campaign, runs, factors);
    result_.expected = mean_outcome(outcomes);
    if (candidate_.place || result_.model.plan.data) {
      result_.months = mean_months(result_.model, outcomes, factors);
    }
    for (const PlanInputInfo& info : plan_inputs()) {
      if (changes_run(info.input)) continue;
      swing(info.input,
            [&](const PlanFactors& changed) { return mean_of(campaign, runs, changed); });
    }
  }

  void swing_run(PlanInput input) {
    swing(input, [&](const PlanFactors& changed) {
      const Campaign campaign = with_factors(result_.model.plan.campaign, changed);
      return mean_of(campaign, runs_of(campaign, watch_), changed);
    });
  }

  template <class Mean>
  void swing(PlanInput input, Mean mean) {
    const auto i = static_cast<std::size_t>(input);
    PlanSwing& out = result_.swings[i];
    out.input = input;
    out.low = result_.model.inputs[i].quantile(kLowShare);
    out.high = result_.model.inputs[i].quantile(kHighShare);
    PlanFactors factors = medians(result_.model);
    factors[i] = out.low;
    out.at_low = mean(factors);
    factors[i] = out.high;
    out.at_high = mean(factors);
  }

  void sample(std::size_t i) {
    const auto number = static_cast<std::uint32_t>(i);
    const PlanFactors factors = drawn(spec_, result_.model, number);
    const Campaign campaign = with_factors(result_.model.plan.campaign, factors);
    result_.samples[i] =
        outcome(campaign, run_trajectory(campaign, number, RunDetail::sums, watch_), factors);
  }

  const PlanSpec& spec_;
  const PlanCandidate& candidate_;
  PlanResult& result_;
  TrajectoryWatch watch_;
};

/// How many trajectories there are, and how long they take.
void tell_estimate(const std::vector<CandidateWork>& work, const PlanOptions& options) {
  if (!options.estimated) return;
  double trajectories = 0;
  Seconds all;
  for (const CandidateWork& of : work) {
    trajectories += of.trajectories();
    all += of.estimate();
  }
  options.estimated(trajectories, all);
}

SampleMean spread_of(const std::vector<PlanOutcome>& samples, double PlanOutcome::* number) {
  std::vector<double> values;
  values.reserve(samples.size());
  for (const PlanOutcome& sample : samples) values.push_back(sample.*number);
  return sample_mean(values);
}

constexpr std::array<PlanMeasure, 3> kMeasures{{{"time_s", "Time", &PlanOutcome::time_s},
                                                {"usd", "Money", &PlanOutcome::usd},
                                                {"energy_j", "Energy", &PlanOutcome::energy_j}}};

}  // namespace

std::span<const PlanMeasure, 3> plan_measures() { return kMeasures; }

std::vector<MonthMoney> expected_months(const PlanResult& result) {
  return fleet_months(result.model, result.expected,
                      {.price = result.model.price_factor, .energy = 1});
}

std::size_t plan_pieces(const PlanSpec& spec) {
  const auto tuned = std::ranges::count(spec.candidates, true, &PlanCandidate::tuned);
  return static_cast<std::size_t>(tuned) +
         spec.candidates.size() * (1 + CandidateWork::pieces(spec));
}

PlanReport evaluate_plan(const PlanSpec& spec, const PlanOptions& options) {
  PlanReport report;
  report.results.resize(spec.candidates.size());
  Workers workers(options);
  // One search after the other, each on all threads.
  for (std::size_t c = 0; c < spec.candidates.size() && !workers.stopped(); ++c) {
    if (!spec.candidates[c].tuned) continue;
    report.results[c].model = tune_candidate(spec.candidates[c], options.jobs, options.interrupted);
    workers.report();
  }
  workers.run(spec.candidates.size(), [&](std::size_t c) {
    PlanModel& model = report.results[c].model;
    model = model_candidate(spec.candidates[c], std::move(model));
  });
  std::vector<CandidateWork> work;
  for (std::size_t c = 0; c < spec.candidates.size(); ++c) {
    if (!report.results[c].model.impossible.empty()) continue;
    work.emplace_back(spec, spec.candidates[c], report.results[c],
                      [&](double) { return !options.interrupted || !options.interrupted(); });
  }
  tell_estimate(work, options);
  const std::size_t pieces = CandidateWork::pieces(spec);
  workers.run(work.size() * pieces, [&](std::size_t i) { work[i / pieces].piece(i % pieces); });
  report.interrupted = workers.stopped();
  if (report.interrupted) return report;
  for (PlanResult& result : report.results) {
    if (!result.model.impossible.empty()) continue;
    result.time_s = spread_of(result.samples, &PlanOutcome::time_s);
    result.usd = spread_of(result.samples, &PlanOutcome::usd);
    result.energy_j = spread_of(result.samples, &PlanOutcome::energy_j);
    result.peak_w = spread_of(result.samples, &PlanOutcome::peak_w);
  }
  choose(spec, report);
  return report;
}

}  // namespace lockstep
