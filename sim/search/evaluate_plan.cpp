#include "sim/search/evaluate_plan.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <fmt/format.h>
#include <mutex>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>
#include <utility>

#include "models/site/finance.hpp"
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

/// Trajectories of a later phase have numbers of their own.
constexpr std::uint32_t kPhaseNumbers = 1U << 24;

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

std::vector<PlannedRun> runs_of(const FactoredCampaign& of, std::uint32_t first,
                                const TrajectoryWatch& watch) {
  std::vector<PlannedRun> runs;
  runs.reserve(kTrajectories);
  for (std::uint32_t t = 0; t < kTrajectories; ++t) {
    runs.push_back(planned_trajectory(of, first + t, watch));
  }
  return runs;
}

/// Adds money by month, mean over the runs, which begin at `start`: it adds up to the mean of their
/// money.
void add_mean_months(const PlanModel& model, const std::vector<PlanOutcome>& outcomes,
                     Seconds start, std::vector<PlanMonth>& mean) {
  const auto n = static_cast<double>(outcomes.size());
  for (const PlanOutcome& outcome : outcomes) {
    const std::vector<PlanMonth> months = plan_months(model, outcome, start);
    mean.resize(std::max(mean.size(), months.size()));
    for (std::size_t m = 0; m < months.size(); ++m) {
      for (const auto part :
           {&PlanMonth::write_off_usd, &PlanMonth::running_usd, &PlanMonth::rent_usd,
            &PlanMonth::egress_usd, &PlanMonth::storage_usd}) {
        mean[m].*part += months[m].*part / n;
      }
    }
  }
}

/// Runs of a phase with the factors in force.
struct PhaseRuns {
  FactoredCampaign of;
  std::vector<PlannedRun> runs;
};

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
    double sum = 0;
    for (std::size_t p = 0; p < phases(); ++p) sum += trajectories_of(p);
    return sum;
  }
  [[nodiscard]] Seconds estimate() const {
    Seconds sum;
    for (std::size_t p = 0; p < phases(); ++p) {
      sum += trajectories_of(p) * trajectory_estimate(model(p).plan.campaign);
    }
    return sum;
  }

  static std::size_t pieces(const PlanSpec& spec) { return 1 + kRunInputs.size() + spec.samples; }

  void piece(std::size_t i) {
    if (i == 0) return expect();
    if (i <= kRunInputs.size()) return swing_run(kRunInputs[i - 1]);
    sample(i - 1 - kRunInputs.size());
  }

 private:
  using Begins = std::optional<PhaseBegins>;

  [[nodiscard]] std::size_t phases() const { return 1 + result_.later.size(); }
  [[nodiscard]] const PlanModel& model(std::size_t phase) const {
    return phase == 0 ? result_.model : result_.later[phase - 1].model;
  }
  [[nodiscard]] const PlanCandidate& candidate(std::size_t phase) const {
    return phase == 0 ? candidate_ : candidate_.then[phase - 1]->of;
  }
  [[nodiscard]] double trajectories_of(std::size_t phase) const {
    const bool sited = model(phase).site != nullptr;
    const double bars = static_cast<double>(kRunInputs.size()) + (sited ? 1 : 0);
    return (sited ? 2 : 1) * candidate(phase).run.trajectories + 2 * bars * kTrajectories +
           spec_.samples;
  }
  [[nodiscard]] static std::uint32_t numbers(std::size_t phase) {
    return static_cast<std::uint32_t>(phase) * kPhaseNumbers;
  }
  /// What the phases come to one after the other.
  template <class Each>
  [[nodiscard]] PlanOutcome chain(Each each) const {
    PlanOutcome out = each(std::size_t{0}, Begins{});
    for (std::size_t p = 1; p < phases(); ++p) {
      const PhaseResult& phase = result_.later[p - 1];
      const PhaseBegins begins{.ready = Seconds{out.time_s} + phase.moves,
                               .kept = candidate_.then[p - 1]->kept,
                               .lots_spent = out.lots_spent};
      out = chained(out, phase.moves, phase.egress_usd, each(p, Begins{begins}));
    }
    return out;
  }

  [[nodiscard]] PlanOutcome outcome(std::size_t phase, const Campaign& campaign,
                                    const PlannedRun& run, const PlanFactors& factors,
                                    const Begins& begins) const {
    PlanOutcome out = outcome_of(candidate(phase), model(phase), run, factors, begins);
    out.finished = run.sums.work >= to_run_time(campaign.work);
    out.times = times_of(campaign, run.sums);
    return out;
  }

  [[nodiscard]] std::vector<PlanOutcome> outcomes_of(std::size_t phase, const PhaseRuns& ran,
                                                     const PlanFactors& factors,
                                                     const Begins& begins) const {
    std::vector<PlanOutcome> outcomes;
    outcomes.reserve(ran.runs.size());
    for (const PlannedRun& run : ran.runs) {
      outcomes.push_back(outcome(phase, ran.of.campaign, run, factors, begins));
    }
    return outcomes;
  }

  /// The trajectories that `lockstep run` draws, so that both give the same answer.
  [[nodiscard]] std::vector<PlannedRun> expected_runs(std::size_t phase,
                                                      const FactoredCampaign& of) const {
    const RunSpec& run = candidate(phase).run;
    SampleOptions sampling;
    sampling.trajectories = static_cast<std::uint32_t>(run.trajectories);
    sampling.within = run.within;
    sampling.under_way = watch_;
    std::vector<PlannedRun> out;
    for (TrajectoryResult& sums : lockstep::sample(of.campaign, sampling)) {
      const auto number = static_cast<std::uint32_t>(out.size());
      // Books need phases, which are too many to keep for all.
      out.push_back(of.site ? planned_trajectory(of, number, watch_)
                            : PlannedRun{.sums = std::move(sums), .bill = {}, .fleet = of.fleet});
    }
    return out;
  }

  /// The expected outcome, and the bars of inputs that leave the runs as they are.
  void expect() {
    std::vector<PhaseRuns> ran(phases());
    std::vector<std::vector<PlanOutcome>> outcomes(phases());
    result_.expected = chain([&](std::size_t p, const Begins& begins) {
      const PlanFactors factors = medians(model(p));
      ran[p].of = with_factors(model(p), factors, begins);
      ran[p].runs = expected_runs(p, ran[p].of);
      outcomes[p] = outcomes_of(p, ran[p], factors, begins);
      PlanOutcome& mean = p == 0 ? result_.first : result_.later[p - 1].expected;
      mean = mean_outcome(outcomes[p]);
      if (p > 0) result_.later[p - 1].fleet = ran[p].of.fleet;
      return mean;
    });
    add_money_by_month(outcomes);
    for (const PlanInputInfo& info : plan_inputs()) {
      if (changes_run(info.input)) continue;
      if (info.input == PlanInput::power && sited()) {
        swing_run(info.input);  // a site holds machines that draw more to a slower pace
        continue;
      }
      swing(info.input, [&](std::size_t p, const PlanFactors& changed, const Begins& begins) {
        return mean_outcome(outcomes_of(p, ran[p], changed, begins));
      });
    }
  }
  [[nodiscard]] bool sited() const {
    for (std::size_t p = 0; p < phases(); ++p) {
      if (model(p).site) return true;
    }
    return false;
  }
  void add_money_by_month(const std::vector<std::vector<PlanOutcome>>& outcomes) {
    if (!candidate_.place && !result_.model.plan.data && phases() == 1) return;
    add_mean_months(result_.model, outcomes[0], Seconds{}, result_.months);
    Seconds done{result_.first.time_s};
    for (std::size_t p = 1; p < phases(); ++p) {
      const PhaseResult& phase = result_.later[p - 1];
      add_to_months(phase.egress_usd, done, phase.moves, &PlanMonth::egress_usd, result_.months);
      done += phase.moves;
      add_mean_months(phase.model, outcomes[p], done, result_.months);
      done += Seconds{phase.expected.time_s};
    }
  }

  void swing_run(PlanInput input) {
    swing(input, [&](std::size_t p, const PlanFactors& changed, const Begins& begins) {
      const FactoredCampaign of = with_factors(model(p), changed, begins);
      const PhaseRuns ran{.of = of, .runs = runs_of(of, numbers(p), watch_)};
      return mean_outcome(outcomes_of(p, ran, changed, begins));
    });
  }

  /// `mean`: of a phase with these factors.
  template <class Mean>
  void swing(PlanInput input, Mean mean) {
    const auto i = static_cast<std::size_t>(input);
    PlanSwing& out = result_.swings[i];
    out.input = input;
    const auto at = [&](double share) {
      return chain([&](std::size_t p, const Begins& begins) {
        PlanFactors factors = medians(model(p));
        factors[i] = model(p).inputs[i].quantile(share);
        return mean(p, factors, begins);
      });
    };
    out.low = result_.model.inputs[i].quantile(kLowShare);
    out.high = result_.model.inputs[i].quantile(kHighShare);
    out.at_low = at(kLowShare);
    out.at_high = at(kHighShare);
  }

  void sample(std::size_t i) {
    const auto number = static_cast<std::uint32_t>(i);
    PlanOutcome& out = result_.samples[i];
    out = chain([&](std::size_t p, const Begins& begins) {
      const PlanFactors factors = drawn(spec_, model(p), number);
      const FactoredCampaign of = with_factors(model(p), factors, begins);
      return outcome(p, of.campaign, planned_trajectory(of, numbers(p) + number, watch_), factors,
                     begins);
    });
    out.lots = {};  // nobody asks a sample for its months
  }

  const PlanSpec& spec_;
  const PlanCandidate& candidate_;
  PlanResult& result_;
  TrajectoryWatch watch_;
};

/// When a phase that can begin at `ready` is done at the soonest: nothing fails, and nothing but
/// the lots holds it back.
Seconds soonest_end(const PlanModel& model, Seconds ready) {
  if (!model.impossible.empty()) return ready;
  if (!model.fleet) {
    const Seconds staged = model.plan.data ? model.plan.data->begins : Seconds{};
    return ready + staged + model.plan.campaign.work;
  }
  const Seconds run = model.fleet->soonest(model.plan.campaign.work);
  const bool ends = std::isfinite(run.base_units());  // else no run of it is finished
  return model.fleet->begins + (ends ? run : Seconds{});
}

/// The phases after a candidate's first, and what its weights take on their way to each. `found`:
/// what a search made of each.
void model_later(const PlanCandidate& candidate, std::vector<PlanModel> found, PlanResult& result) {
  const PlanModel* before = &result.model;
  // Without a failure: lots are there at least as long as a run needs them.
  Seconds ready = soonest_end(result.model, Seconds{});
  result.later.reserve(candidate.then.size());
  for (std::size_t p = 0; p < candidate.then.size(); ++p) {
    const std::shared_ptr<const PlanPhase>& next = candidate.then[p];
    if (!result.model.impossible.empty()) return;
    PhaseResult phase;
    if (next->way) {
      const Bytes weights = before->plan.checkpoint.all;
      phase.moves = transfer_time(*next->way, weights);
      phase.egress_usd = transfer_usd(*next->way, weights);
    }
    ready += phase.moves;
    phase.model = model_candidate(next->of, std::move(found[p]), ready);
    // That is told of a run that begins as it was planned.
    std::erase_if(phase.model.plan.assumptions, [](const std::string& text) {
      return text.starts_with("run.purchase: there are nodes for the job on day ");
    });
    if (!phase.model.impossible.empty()) {
      result.model.impossible =
          fmt::format("cannot go on with {}, which {}", next->of.name, phase.model.impossible);
      result.later.clear();
      return;
    }
    ready = soonest_end(phase.model, ready);
    result.later.push_back(std::move(phase));
    before = &result.later.back().model;
  }
}

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

PlanOutcome chained(const PlanOutcome& so_far, Seconds moves, double egress_usd,
                    const PlanOutcome& next) {
  PlanOutcome out = so_far;
  for (const auto number :
       {&PlanOutcome::time_s, &PlanOutcome::usd, &PlanOutcome::energy_j,
        &PlanOutcome::interruptions, &PlanOutcome::write_off_usd, &PlanOutcome::running_usd,
        &PlanOutcome::energy_usd, &PlanOutcome::rent_usd, &PlanOutcome::demand_usd,
        &PlanOutcome::egress_usd, &PlanOutcome::data_usd, &PlanOutcome::storage_usd,
        &PlanOutcome::run_s}) {
    out.*number += next.*number;
  }
  out.times = chained(so_far.times, next.times);
  out.time_s += moves.base_units();
  out.egress_usd += egress_usd;
  out.usd += egress_usd;
  out.gpus = std::max(so_far.gpus, next.gpus);
  out.peak_w = std::max(so_far.peak_w, next.peak_w);
  out.after_s = next.after_s;
  out.lots_spent = next.lots_spent;
  out.finished = so_far.finished && next.finished;
  if (out.run_s > 0) {
    for (const auto share : {&PlanOutcome::goodput, &PlanOutcome::waiting}) {
      out.*share = (so_far.*share * so_far.run_s + next.*share * next.run_s) / out.run_s;
    }
  }
  out.tonnes_co2 = so_far.tonnes_co2 && next.tonnes_co2
                       ? std::optional(*so_far.tonnes_co2 + *next.tonnes_co2)
                       : std::nullopt;
  for (const auto part :
       {&CapitalReport::machines_usd, &CapitalReport::network_usd, &CapitalReport::building_usd}) {
    out.capital.*part += next.capital.*part;
  }
  return out;
}

std::size_t plan_pieces(const PlanSpec& spec) {
  std::size_t tuned = 0;
  for (const PlanCandidate& candidate : spec.candidates) {
    tuned += candidate.tuned ? 1 : 0;
    for (const auto& phase : candidate.then) tuned += phase->of.tuned ? 1 : 0;
  }
  return tuned + spec.candidates.size() * (1 + CandidateWork::pieces(spec));
}

PlanReport evaluate_plan(const PlanSpec& spec, const PlanOptions& options) {
  PlanReport report;
  report.results.resize(spec.candidates.size());
  Workers workers(options);
  // One search after the other, each on all threads.
  const auto search = [&](const PlanCandidate& candidate, PlanModel& model) {
    if (!candidate.tuned || workers.stopped()) return;
    model = tune_candidate(candidate, options.jobs, options.interrupted);
    workers.report();
  };
  std::vector<std::vector<PlanModel>> later(spec.candidates.size());
  for (std::size_t c = 0; c < spec.candidates.size(); ++c) {
    const PlanCandidate& candidate = spec.candidates[c];
    search(candidate, report.results[c].model);
    later[c].resize(candidate.then.size());
    for (std::size_t p = 0; p < candidate.then.size(); ++p) {
      search(candidate.then[p]->of, later[c][p]);
    }
  }
  workers.run(spec.candidates.size(), [&](std::size_t c) {
    PlanModel& model = report.results[c].model;
    model = model_candidate(spec.candidates[c], std::move(model));
    model_later(spec.candidates[c], std::move(later[c]), report.results[c]);
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
