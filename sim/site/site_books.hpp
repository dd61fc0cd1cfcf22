/// What a site took over a run: energy, water, money and carbon, hour by hour, month by month.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "models/power/cost.hpp"
#include "sim/run/trajectory.hpp"
#include "sim/site/held_power.hpp"
#include "sim/site/site_clock.hpp"

namespace lockstep {

/// Amounts of an hour, a month or the run. Energy balances:
///     imported + renewable + battery_out + generated = facility + battery_in + given_away
struct SiteAmounts {
  Joules machines;  ///< without what cools and feeds them
  Joules facility;  ///< with it
  Joules renewable, battery_in, battery_out;
  Joules generated;   ///< by generators of the path
  Joules imported;    ///< from the grid
  Joules given_away;  ///< what renewables gave too much: exported
  Joules short_of;    ///< drawn above what the grid gives
  double litres = 0;
  double energy_usd = 0;        ///< imported, less what is paid for exports, and generators' fuel
  std::optional<double> grams;  ///< of carbon dioxide; none: nobody said the grid's intensity
  double fuel_usd = 0, fuel_grams = 0;  ///< of it, what generators take

  SiteAmounts& operator+=(const SiteAmounts& more);
};

struct SiteHourBook {
  Seconds length;  ///< of the run in it: less than an hour only in the last
  SiteAmounts of;
  double outside = 0, pue = 1;
  double coolant = 0;  ///< the warmest; 0: no plant is described
  double usd_per_kwh = 0;
  Watts limit;        ///< of the grid
  Watts shave_above;  ///< the battery stands in for more than that; infinite: for nothing
  std::array<double, std::size(kSiteBounds)> lost{};  ///< seconds of full speed, by what took them
};

struct SiteMonthBook {
  int year = 0, month = 0;
  Seconds length;
  SiteAmounts of;
  Watts peak;                          ///< highest hour from the grid
  std::optional<Watts> shave_above{};  ///< the battery stands in for more than that
  double demand_usd = 0;
  double outside = 0;  ///< mean
};

/// What something brings, and the highest hour of what went through it.
struct Provision {
  Watts brings, most;
  /// Never used; below 0: more was drawn than it gives. Cards are held to what is brought within a
  /// millionth, which is nothing here.
  [[nodiscard]] Watts left() const {
    const Watts out = brings - most;
    const bool rounding = std::abs(out.base_units()) < 1e-6 * brings.base_units();
    return rounding ? Watts{} : out;
  }
};

/// What the machines' power has room for. The grid carries what the site takes from it, beside sun,
/// wind and battery; the path carries the machines' power, without what cools them.
struct Megawatts {
  Watts nameplate;            ///< of all GPUs, by their datasheet
  std::optional<Watts> grid;  ///< its limit, in the hour in which it gives most
  std::optional<Watts> path;  ///< what it brings when nothing is broken
  std::optional<Watts> firm;  ///< and with its worst unit broken
  Watts drawn;                ///< highest hour of the site
  HighestDraw highest;        ///< at any time
  Watts imported;             ///< highest hour from the grid
  Watts machines;             ///< highest hour of the machines

  /// Of grid and path the one that has less left; nothing where neither has a limit.
  [[nodiscard]] std::optional<Provision> tightest() const;
};

/// Training while the path holds cards below what they would draw.
struct PathCapping {
  Seconds trained, capped;  ///< all training, and that which was held
  Seconds lost;             ///< of full speed
  double lowest_draw = 1;   ///< of what machines would draw

  /// Time of a step while held, over that of one that is not; 1 where none was held, infinity where
  /// none ran.
  [[nodiscard]] double stretch() const {
    if (capped <= Seconds{}) return 1;
    return capped > lost ? capped / (capped - lost) : std::numeric_limits<double>::infinity();
  }
};

/// What a path is provided for: nodes at their peaks, cards at their datasheet's power.
struct PathProvision {
  Watts peaks;   ///< of all nodes, those that stand by included
  Watts brings;  ///< while nothing is broken

  [[nodiscard]] double oversubscription() const { return peaks / brings; }
  /// Watts of peaks that nobody has to provide for.
  [[nodiscard]] Watts avoided() const { return std::max(Watts{}, peaks - brings); }
};
/// Nothing where the path has no limit, or there is none.
std::optional<PathProvision> path_provision(const SitePlan& plan, const Megawatts& power);

struct SiteBooks {
  std::vector<SiteHourBook> hours;
  std::vector<SiteMonthBook> months;
  SiteAmounts sum;
  double demand_usd = 0;
  std::array<double, std::size(kSiteBounds)> lost{};  ///< seconds, by what took them
  Megawatts power;
  PathCapping capping;
  StandbyRecord standby;
  Seconds generators_ran;  ///< any of them
  Seconds unbound;         ///< that the site held nothing back
  /// What the battery can give as the run begins and ends; none: there is no battery. It begins
  /// full, and balances: begin + efficiency x in - out = end.
  std::optional<Joules> battery_begin{}, battery_end{};
  double warmest_coolant = 0, warmest_outside = 0;

  [[nodiscard]] double usd() const { return sum.energy_usd + demand_usd; }
  /// Of the run's time, in which the site held nothing back.
  [[nodiscard]] double unbound_share() const {
    Seconds all;
    for (const SiteHourBook& hour : hours) all += hour.length;
    return all > Seconds{} ? unbound / all : 1.0;
  }
};

/// Requires a run with its phases, of the trajectory with that number.
SiteBooks site_books(const SitePlan& plan, const TrajectoryResult& run, std::uint32_t trajectory);

/// What whoever has own and leased machines pays for it: each hour's energy as the hour begins, by
/// their share of the nodes that are there; the charge for a month's highest hour as the month
/// ends, by their share in that hour. Prices of the others have energy in them. Requires
/// SitePlan::fleet.
std::vector<EnergyPayment> energy_payments(const SitePlan& plan, const SiteBooks& books);

/// What a bill takes of the books of a run.
struct SiteBill {
  Joules energy;                      ///< of the site
  double usd = 0;                     ///< with a fleet of who has own and leased machines
  double demand_usd = 0;              ///< of it, for the highest hours of months
  std::optional<double> grams;        ///< as SiteAmounts
  HighestDraw highest;                ///< at any time
  std::vector<EnergyPayment> paid{};  ///< with a fleet: energy_payments()
};
SiteBill site_bill(const SitePlan& plan, const SiteBooks& books);
/// A run of `time` that has done so much.
Usage usage_of(const SiteBill& bill, Seconds time, double tokens, Flops model_flops);

}  // namespace lockstep
