/// What the models say about one candidate, and what it comes to when inputs turn out otherwise:
/// one simulated step, priced as often as needed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "models/layer/memory.hpp"
#include "sim/power/step_power.hpp"
#include "sim/run/plan_campaign.hpp"
#include "sim/run/trajectory.hpp"
#include "sim/search/plan_spec.hpp"
#include "sim/site/fleet.hpp"
#include "sim/site/site_books.hpp"
#include "sim/site/site_plan.hpp"

namespace lockstep {

/// A candidate, simulated once with everything as the file says.
struct PlanModel {
  Scenario scenario;       ///< the candidate's, with the layout that was found for it
  std::string layout;      ///< how that was found, in words; empty: it was given
  std::string impossible;  ///< why it cannot be done at all; then nothing below holds
  double step_s = 0, mfu = 0, tokens_per_step = 0, tokens_per_s = 0;
  StepMethod method = StepMethod::exact;
  std::optional<StepBand> band;                  ///< as StepReport
  std::array<Distribution, kPlanInputs> inputs;  ///< the candidate's; the efficiency holds the band
  std::string accuracy;  ///< where the efficiency's distribution is from; empty: the file
  MemoryVerdict memory;
  CampaignPlan plan;
  std::shared_ptr<const Fleet> fleet;    ///< where its run says "purchase"
  std::shared_ptr<const SitePlan> site;  ///< where it says "site"
  double price_factor = 1;               ///< of its region
  StepPower power;                       ///< with the nodes in reserve
};

/// Simulates the steps that the candidate needs, and their power. Throws InputError where the run
/// does not fit together. Impossible: it does not fit in memory, or would take over twenty years.
/// `ready`: of a later phase, when it can begin at the earliest, after the plan's start.
PlanModel model_candidate(const PlanCandidate& candidate, PlanModel found = {}, Seconds ready = {});

/// The fastest layout for a candidate that asks for one, for model_candidate() to go on with.
/// Sharding and recomputation are searched too. Impossible: nothing fits.
PlanModel tune_candidate(const PlanCandidate& candidate, int threads,
                         const std::function<bool()>& interrupted);

/// Where the time of a run went that does not train at full speed, and how far it came.
struct PlanTimes {
  std::array<double, kRunBuckets> s{};  ///< by RunBucket
  /// Of the bucket "degraded": machines that were not there, limits of the site.
  double missing_s = 0, site_s = 0;
  double taken_away = 0;  ///< nodes of spot lots
  double done = 1;        ///< of the work
};

/// How it went, once.
struct PlanOutcome {
  double time_s = 0, usd = 0, energy_j = 0;
  double gpus = 0;    ///< that train
  double peak_w = 0;  ///< highest reading of the site's meter
  double goodput = 0, interruptions = 0;
  std::optional<double> tonnes_co2;  ///< where the grid's intensity is given
  double waiting = 0;  ///< share of the time in which there is no healthy node to go on with
  /// usd = write_off_usd + running_usd + rent_usd + egress_usd + storage_usd; running_usd has
  /// energy_usd in it.
  double write_off_usd = 0, running_usd = 0, energy_usd = 0, rent_usd = 0;
  double demand_usd = 0;                ///< of energy_usd, for the highest hours of months
  double egress_usd = 0, data_usd = 0;  ///< the first has the second, the dataset's, in it
  double storage_usd = 0;               ///< of the tiers that hold the dataset
  /// Of time_s: until its data has come and is staged, and after the run until its last checkpoint
  /// is there.
  double before_s = 0, after_s = 0;
  /// Prices with all factors in them: of a GPU-hour that is rented, of energy that is paid for (0:
  /// none is), of a node with its share of network and building (0: rented, or in lots).
  double usd_per_gpu_hour = 0, usd_per_kwh = 0, usd_per_node = 0;
  CapitalReport capital;  ///< to be spent before it begins; none of it where machines are rented
  bool finished = true;   ///< within ten times the time without failures
  PlanTimes times;        ///< of run_s
  double run_s = 0;       ///< of time_s, the run itself: what goodput and waiting are shares of
  std::vector<MonthMoney> lots;  ///< of a purchase, its money by month of the plan
  /// Of a purchase, until its end: what is spent on it with interest, before anything is sold. Of
  /// machines that are kept from one phase to the next, since they came.
  double lots_spent = 0;
};

/// The campaign with the factors in force: work for the efficiency, mean times between failures,
/// times of a recovery. The others do not touch time.
Campaign with_factors(const Campaign& campaign, const PlanFactors& factors);

/// A phase after the first, as the one before it leaves it.
struct PhaseBegins {
  Seconds ready;  ///< it can begin then, after the plan's start: its weights are there
  /// Whether it goes on with the lots of the phase before, and what they have cost so far.
  bool kept = false;
  double lots_spent = 0;
};

/// The candidate's campaign with the factors in force. At a site more power is a slower pace
/// wherever the site binds.
struct FactoredCampaign {
  Campaign campaign;
  std::shared_ptr<const SitePlan> site;  ///< its machines draw as the factors say; none: no site
  std::shared_ptr<const Fleet> fleet;    ///< as it is when the run begins; none: no lots
};
/// `begins`: of a later phase; none: it is the first, and begins as it was planned.
FactoredCampaign with_factors(const PlanModel& model, const PlanFactors& factors,
                              const std::optional<PhaseBegins>& begins = {});

/// A run of it, with its sums alone.
struct PlannedRun {
  TrajectoryResult sums;
  std::optional<SiteBill> bill;        ///< at a site
  std::shared_ptr<const Fleet> fleet;  ///< that it ran on; none: no lots
};
PlannedRun planned_trajectory(const FactoredCampaign& of, std::uint32_t number,
                              const TrajectoryWatch& watch);

/// Prices a run of it. Power scales with its factor; when the job is slower or faster than
/// predicted it draws the same, so that energy goes with time. Machines in reserve are paid for.
/// At a site each hour is paid by its tariff, and each month by its highest hour, as the run's
/// books have them; the run has the factor of power then.
/// A later phase's time is that since it could begin.
PlanOutcome outcome_of(const PlanCandidate& candidate, const PlanModel& model,
                       const PlannedRun& ran, const PlanFactors& factors,
                       const std::optional<PhaseBegins>& begins = {});

/// Of a run, and of two phases one after the other.
PlanTimes times_of(const Campaign& campaign, const TrajectoryResult& run);
PlanTimes chained(const PlanTimes& so_far, const PlanTimes& next);

/// What a month of 1/12 of 365.25 days takes; sums over the months are those of the outcome.
struct PlanMonth {
  double write_off_usd = 0, running_usd = 0, rent_usd = 0, egress_usd = 0, storage_usd = 0;

  [[nodiscard]] double usd() const {
    return write_off_usd + running_usd + rent_usd + egress_usd + storage_usd;
  }
};
/// With a fleet its money month by month, what machines are worth taken off in the last; else each
/// part spread evenly over the run. Egress falls due while the data moves: of the dataset before
/// the run, of checkpoints during it and after it. Months are those of the plan, in which what
/// `outcome` is of begins at `start`.
std::vector<PlanMonth> plan_months(const PlanModel& model, const PlanOutcome& outcome,
                                   Seconds start);

/// Adds an amount, spread evenly from `start` for as long as it takes, and months where there are
/// too few.
void add_to_months(double usd, Seconds start, Seconds takes, double PlanMonth::* part,
                   std::vector<PlanMonth>& months);

/// Means of each number, of one candidate; `finished` if all are. Goodput and waiting are those of
/// all runs together, a long one by its length, as sample_ratio() has them. Requires at least one.
PlanOutcome mean_outcome(const std::vector<PlanOutcome>& outcomes);

}  // namespace lockstep
