/// The site of a run as numbers: what its machines draw, what binds them, hour by hour.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "models/power/cost.hpp"
#include "models/power/hourly.hpp"
#include "models/spec/specs.hpp"
#include "sim/power/step_power.hpp"
#include "sim/run/plan_campaign.hpp"
#include "sim/run/trajectory.hpp"
#include "sim/scenario/run_spec.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/scenario/site_spec.hpp"
#include "sim/site/fleet.hpp"
#include "sim/site/pace_table.hpp"
#include "sim/site/smoothing_ways.hpp"

namespace lockstep {

/// What all machines draw, without what cools and feeds them.
struct MachineLevels {
  Watts training, waiting, starting, idle;
};

/// Machines at a moment, beside the levels and the table of a site, which are of the whole job with
/// what it holds in reserve.
struct SiteMachines {
  double working =
      1;  ///< nodes that the job runs on, over all of its own; the reserve goes with them
  Watts standing{};  ///< what the others that are there draw idle, without what cools them
  Watts away{};      ///< of spot nodes that are taken away, taken from `standing` on average

  /// All of them, while the whole job would draw so much.
  [[nodiscard]] Watts draw(Watts whole) const { return working * whole + standing; }
};

/// A change of power, and what the grid's ramp makes of it.
struct RampVerdict {
  double step_w_per_s = 0;  ///< steepest within a step, over power.ramp_window
  Joules store;             ///< of all supplies together, that a step needs to stay within the ramp
  Seconds start;            ///< from machines that start to training, at the ramp
  std::vector<SmoothingWay> ways{};  ///< to keep a step within the ramp; none where it is not given
};

/// What nodes ask of the path of power.
struct PathDemand {
  Watts per_place;  ///< of each node that the path can feed, while the job trains
  int needed = 0;   ///< nodes that have to be fed, or the job stops
};

struct SitePlan {
  SiteSpec spec;
  FacilitySpec facility;
  double outside_celsius = 20;                  ///< where nobody says it by the hour
  HourlySeries usd_per_kwh;                     ///< the same
  std::optional<HourlySeries> grams_per_kwh{};  ///< the same
  PaceTable table;
  MachineLevels levels;
  int nodes = 1;     ///< that the job runs on
  int reserved = 0;  ///< beside them
  Watts gpu_nameplate;
  RampVerdict ramp;
  std::vector<std::string> assumptions;
  Watts node_peak{};  ///< cards at their datasheet's power, the rest as it trains, fabric included
  std::shared_ptr<const Fleet> fleet{};  ///< machines as they come; none: all are there

  /// Those of the lots that are there; without a fleet all.
  [[nodiscard]] SiteMachines machines(RunTime now) const;
  [[nodiscard]] SiteMachines machines(const FleetStep& there) const;
  /// Nodes of lots are spread evenly over what the path feeds; of kinds that the job does not run
  /// on, too. Without a fleet all nodes are there.
  [[nodiscard]] PathDemand path_demand(RunTime now) const;
  [[nodiscard]] PathDemand path_demand(const FleetStep& there) const;
  /// The highest of the run.
  [[nodiscard]] PathDemand highest_path_demand() const;
  /// Most nodes that are there at once, the job's reserve included.
  [[nodiscard]] int most_nodes() const;
  [[nodiscard]] const SiteHour& hour(std::int64_t number) const {
    return spec.hours[static_cast<std::size_t>(number) % spec.hours.size()];
  }
  /// The calendar month that it is in, also where hours are repeated.
  [[nodiscard]] std::chrono::year_month month(std::int64_t number) const;
  [[nodiscard]] double outside(const SiteHour& at) const {
    return at.outside_celsius.value_or(outside_celsius);
  }
  /// What the site draws in the hour with that number if the job trains through it.
  [[nodiscard]] Watts trained_draw(std::int64_t number) const;
  /// Of the hour with that number, since the run began.
  [[nodiscard]] double usd(std::int64_t number) const;
  /// None: neither the hours nor the scenario say the grid's intensity.
  [[nodiscard]] std::optional<double> grams(std::int64_t number) const;
};

/// Price of the site's battery, of the units of its path and of its cooling plant: their prices by
/// energy, capacity and heat. What says no price costs nothing.
double plants_usd(const SiteSpec& spec);
/// The cost of a run at a site whose plants cost so much: they go with the building.
CostReport with_plants(CostReport cost, double usd, const CostSpec& prices, const Usage& usage);
/// What stands at the site and has no price of its own; empty: nothing. A price of the building has
/// power and cooling in it, and so have prices of lots.
std::string unpriced_words(const SitePlan& plan, const CostSpec& cost);

/// Simulates the steps that the site needs, with so many nodes in reserve. Throws InputError where
/// the scenario has no "power", or the path feeds fewer nodes than the job has.
SitePlan plan_site(const Scenario& scenario, const RunSpec& run, int reserved,
                   std::shared_ptr<const Fleet> fleet = {});

/// The plan for machines whose draw is multiplied by `factor` at every pace. Their datasheet values
/// and the ramp stay.
SitePlan with_draw(SitePlan plan, double factor);

/// For Campaign::pace: the slower of what the site gives and what the machines that are there can
/// do. Either may be missing.
std::function<PaceLaw(std::uint32_t)> site_pace(std::shared_ptr<const SitePlan> site,
                                                std::shared_ptr<const Fleet> fleet);

/// A campaign with the pace of its site.
struct SitedCampaign {
  CampaignPlan plan;
  std::shared_ptr<const SitePlan> site;  ///< none: the run has no site
  std::shared_ptr<const Fleet> fleet;    ///< none: all of its machines are there
};
/// Hot spares beside a purchase: as many as the run says, or fewer where its lots leave fewer.
enum class LotSpares : std::uint8_t { exactly, up_to };
/// plan_campaign(), at the run's site and on the machines that it has, where it says so. Lots count
/// from the plan's start; staging of the run's dataset begins `data_comes` after it, and the run
/// not before it is staged. Throws InputError also where lots leave fewer spares than they have to.
SitedCampaign plan_sited(const RunWork& work, const RunSpec& run,
                         LotSpares spares = LotSpares::exactly, Seconds data_comes = {});

/// Nodes of spot lots that their provider took away in a run.
double taken_away(const Campaign& campaign, const TrajectoryResult& run);

/// The campaign for a fleet that begins at another moment: its pace, and nodes of spot lots, which
/// are taken away while they are there. The moment is no earlier than that of the fleet for which
/// the campaign was planned.
void begin_with(const Fleet& fleet, Campaign& campaign);

}  // namespace lockstep
