/// The answer to a scenario with "run", of days to months with failures, and its JSON.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "models/accuracy/prediction_interval.hpp"
#include "models/power/cost.hpp"
#include "sim/answer/hash_answer.hpp"
#include "sim/answer/member_names.hpp"
#include "sim/answer/step_answer.hpp"
#include "sim/answer/value.hpp"
#include "sim/power/rl_power.hpp"
#include "sim/power/step_power.hpp"
#include "sim/run/optimum.hpp"
#include "sim/run/plan_campaign.hpp"
#include "sim/run/summary.hpp"
#include "sim/run/trajectory.hpp"
#include "sim/scenario/run_spec.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/site/site_books.hpp"
#include "sim/site/site_plan.hpp"
#include "sim/step/step_report.hpp"

namespace lockstep {

/// Each bucket of wall time as JSON and people call it.
struct RunBucketName {
  std::string_view key, words;
};
std::span<const RunBucketName, kRunBuckets> run_bucket_names();

/// What the mean run draws from the grid, and what it costs.
struct RunBill {
  Usage usage;
  CostReport cost;
};

/// What the site was to the run whose goodput is the median.
struct SiteAnswer {
  std::shared_ptr<const SitePlan> plan;
  SiteBooks books;
};

/// How often a job of that size is stopped by the same components: its mean time to failure.
struct ProjectedMttf {
  int gpus = 0;
  Seconds mttf;
};

struct CampaignResult {
  const Scenario& scenario;
  CampaignPlan plan;
  RunSummary summary;
  StepReport step{};  ///< a healthy one, with its timeline where there is a bill
  double mfu = 0;     ///< of that step, attention in full
  std::vector<ProjectedMttf> projections{};
  /// The trajectory whose goodput is the median, with its timeline; where a report or a trace asks.
  std::optional<TrajectoryResult> typical{};
  std::uint32_t typical_number = 0;
  std::optional<IntervalOptimum> optimum{};
  std::optional<StepPower> power{};              ///< where the scenario says "power"
  std::vector<RlPhasePower> phases{};            ///< with it, of "rl": of an iteration
  std::optional<RunBill> bill{};                 ///< with it
  std::shared_ptr<const SitePlan> site_plan{};   ///< where the run says "site"
  std::optional<SiteAnswer> site{};              ///< with it
  std::shared_ptr<const Fleet> fleet{};          ///< where the run says "purchase"
  bool interrupted = false;                      ///< by Ctrl-C: fewer trajectories, or no optimum
  std::optional<PredictionInterval> interval{};  ///< of a healthy step's time
  /// Where hashes decide; its bands are of a healthy step, the wall time and goodput.
  std::optional<HashAnswer> hash{};
  WrittenScenario written{};       ///< for the answer to hold
  const RlScenario* rl = nullptr;  ///< whose iterations are its steps; its training is `scenario`

  [[nodiscard]] RunWork work() const { return rl == nullptr ? RunWork(scenario) : RunWork(*rl); }
  /// Of the mean run.
  [[nodiscard]] double steps() const {
    return summary.wall_s.mean * summary.shares[0] / plan.step_s;
  }
  [[nodiscard]] double tokens_per_step() const;
  /// Of the job's GPUs; where its machines come in lots of those that it runs on.
  [[nodiscard]] double gpu_hours() const;
  /// Of all GPUs that the job is laid out for, as if they were there all the time.
  [[nodiscard]] double whole_gpu_hours() const;
  /// Of the job's GPUs and of the hot spares, which wait for it alone: what is owned or rented.
  /// Where machines come in lots, of those that are there.
  [[nodiscard]] double held_gpu_hours() const;
  /// What a cloud asks for the latter; empty: no price is known.
  [[nodiscard]] std::optional<double> rent_usd() const;
  /// From the start of the plan, or of the staging of its dataset, until the first step.
  [[nodiscard]] Seconds before() const;
  /// The same until the mean run is done: the answer to "how long".
  [[nodiscard]] Seconds done() const { return before() + Seconds{summary.wall_s.mean}; }
  /// Its dataset is held from the start of its staging until the mean run is done, that long after.
  /// Requires plan.data.
  [[nodiscard]] Seconds data_until() const;
  /// For holding its dataset, of all tiers; 0 without one. In none of the bill's figures.
  [[nodiscard]] double storage_usd() const;
};

/// Prices of "cost", with the tariff of the run's site in place of its own where the site has one.
CostSpec prices_of(const CampaignResult& result);

/// Money by month of the mean run, where its machines are bought. Requires CampaignResult::fleet.
std::vector<MonthMoney> months_of(const CampaignResult& result);

/// The run as it will be sampled. Throws InputError where it cannot be planned.
CampaignResult planned_run(const RunWork& work, const RunSpec& run, WrittenScenario written);

/// The one place where a run's answer is put together: draws the trajectories and fills in what
/// follows from them, add_step() and the interval included; the hash only of the draw that it is
/// of. With `timeline` the median trajectory is kept too. False where sampling was stopped before
/// the first trajectory was done.
bool answer_run(const RunSpec& run, const SampleOptions& sampling, bool timeline,
                const StepIntervals& intervals, CampaignResult& result);

/// Fills in what a healthy step says about the run: its FLOPs, its power, and with that the bill.
/// Needs the plan and the summary.
void add_step(CampaignResult& result, const RunSpec& run);

/// The numbers of the answer's first level, every bucket's share of the wall time, and of machines
/// that are bought their money as "purchase.usd".
NamedNumbers campaign_numbers(const CampaignResult& result);

/// With units in the names, at most 12 significant digits, in a fixed order; of the first level
/// `only` these members, where they are given.
nlohmann::ordered_json campaign_json(const CampaignResult& result,
                                     const MemberNames* only = nullptr);
}  // namespace lockstep
