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

std::vector<PlannedRun> runs_of(const FactoredCampaign& of, const TrajectoryWatch& watch) {
  std::vector<PlannedRun> runs;
  runs.reserve(kTrajectories);
  for (std::uint32_t t = 0; t < kTrajectories; ++t) {
    runs.push_back(planned_trajectory(of, t, watch));
  }
  return runs;
}

/// Money by month, mean over the runs: it adds up to the mean of their money.
std::vector<PlanMonth> mean_months(const PlanModel& model,
                                   const std::vector<PlanOutcome>& outcomes) {
  std::vector<PlanMonth> mean;
  const auto n = static_cast<double>(outcomes.size());
  for (const PlanOutcome& outcome : outcomes) {
    const std::vector<PlanMonth> months = plan_months(model, outcome);
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
    const bool sited = result_.model.site != nullptr;
    const double bars = static_cast<double>(kRunInputs.size()) + (sited ? 1 : 0);
    return (sited ? 2 : 1) * candidate_.run.trajectories + 2 * bars * kTrajectories + spec_.samples;
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
  [[nodiscard]] PlanOutcome outcome(const Campaign& campaign, const PlannedRun& run,
                                    const PlanFactors& factors) const {
    PlanOutcome out = outcome_of(candidate_, result_.model, run, factors);
    out.finished = run.sums.work >= to_run_time(campaign.work);
    return out;
  }

  [[nodiscard]] std::vector<PlanOutcome> outcomes_of(const Campaign& campaign,
                                                     const std::vector<PlannedRun>& runs,
                                                     const PlanFactors& factors) const {
    std::vector<PlanOutcome> outcomes;
    outcomes.reserve(runs.size());
    for (const PlannedRun& run : runs) outcomes.push_back(outcome(campaign, run, factors));
    return outcomes;
  }
  [[nodiscard]] PlanOutcome mean_of(const Campaign& campaign, const std::vector<PlannedRun>& runs,
                                    const PlanFactors& factors) const {
    return mean_outcome(outcomes_of(campaign, runs, factors));
  }

  /// The trajectories that `lockstep run` draws, so that both give the same answer.
  [[nodiscard]] std::vector<PlannedRun> expected_runs(const FactoredCampaign& of) const {
    SampleOptions sampling;
    sampling.trajectories = static_cast<std::uint32_t>(candidate_.run.trajectories);
    sampling.within = candidate_.run.within;
    sampling.under_way = watch_;
    std::vector<PlannedRun> out;
    for (TrajectoryResult& sums : lockstep::sample(of.campaign, sampling)) {
      const auto number = static_cast<std::uint32_t>(out.size());
      // Books need phases, which are too many to keep for all.
      out.push_back(of.site ? planned_trajectory(of, number, watch_)
                            : PlannedRun{.sums = std::move(sums), .bill = {}});
    }
    return out;
  }

  /// The expected outcome, and the bars of inputs that leave the runs as they are.
  void expect() {
    const PlanFactors factors = medians(result_.model);
    const FactoredCampaign of = with_factors(result_.model, factors);
    const std::vector<PlannedRun> runs = expected_runs(of);
    const std::vector<PlanOutcome> outcomes = outcomes_of(of.campaign, runs, factors);
    result_.expected = mean_outcome(outcomes);
    if (candidate_.place || result_.model.plan.data) {
      result_.months = mean_months(result_.model, outcomes);
    }
    for (const PlanInputInfo& info : plan_inputs()) {
      if (changes_run(info.input)) continue;
      if (info.input == PlanInput::power && of.site) {
        swing_run(info.input);  // a site holds machines that draw more to a slower pace
        continue;
      }
      swing(info.input,
            [&](const PlanFactors& changed) { return mean_of(of.campaign, runs, changed); });
    }
  }

  void swing_run(PlanInput input) {
    swing(input, [&](const PlanFactors& changed) {
      const FactoredCampaign of = with_factors(result_.model, changed);
      return mean_of(of.campaign, runs_of(of, watch_), changed);
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
    const FactoredCampaign of = with_factors(result_.model, factors);
    PlanOutcome& out = result_.samples[i];
    out = outcome(of.campaign, planned_trajectory(of, number, watch_), factors);
    out.lots = {};  // nobody asks a sample for its months
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
