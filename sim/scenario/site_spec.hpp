/// What a scenario says about the site of a long run: its weather, grid, plants, hour by hour.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/units.hpp"
#include "models/site/plant.hpp"
#include "models/site/standby.hpp"

namespace lockstep {

/// An hour of the site. What files do not have is the scenario's constant.
struct SiteHour {
  int year = 1970, month = 1, day_of_year = 1;  ///< where the site is
  int hour = 0;                                 ///< 0 to 23, of the local clock
  std::optional<double> outside_celsius;        ///< nobody said: that of "power"
  double humidity = 0.5;                        ///< relative, 0 to 1
  double usd_per_kwh = 0;
  double grams_per_kwh = 0;
  Watts limit{std::numeric_limits<double>::infinity()};  ///< that the grid gives
  double solar = 0, wind = 0;                            ///< of what is installed, 0 to 1
};

struct BatterySpec {
  double energy_mwh = 0;
  Watts power;              ///< in and out, at most
  double efficiency = 0.9;  ///< out over in
  /// From the grid, at most; what renewables give too much may come at full power.
  std::optional<Watts> charge_power{};
  /// Tariffs below which it is charged from the grid, above which it stands in for the grid.
  std::optional<double> charge_below{}, discharge_above{};
  /// It stands in for what is taken from the grid above that power, and is charged below it; with
  /// `lowest` above the lowest power that it can hold over each month.
  std::optional<Watts> shave_above{};
  bool shave_lowest = false;
  double usd_per_kwh = 0, usd_per_kw = 0;  ///< its price, by energy and by power

  [[nodiscard]] bool shaves() const { return shave_above || shave_lowest; }
};

/// Which temperature the plant gives its heat to.
enum class HeatSink : std::uint8_t { dry, wet, chiller };
inline constexpr std::string_view kHeatSinks[]{"dry", "wet", "chiller"};

struct CoolingPlant {
  UnitBank bank;
  CoolingLaw law;
  std::vector<CoolingStage> loop{};  ///< behind it, in this order
  HeatSink sink = HeatSink::dry;
  double cycles = 4;      ///< of concentration of the water that evaporates
  double usd_per_kw = 0;  ///< price of its units, by the heat that they carry
};

/// What goes through a part of the way that power takes.
enum class PathLoad : std::uint8_t {
  machines,  ///< what they draw alone
  site,      ///< and what cools them, lights them, is lost on the way
};
inline constexpr std::string_view kPathLoads[]{"machines", "site"};

/// A bank of the way that power takes: feeds, transformers, UPS, generators, rows.
struct PowerPart {
  UnitBank bank;
  Watts capacity;  ///< of a unit, for what it carries; 0: no limit
  PathLoad carries = PathLoad::machines;
  /// Once planned, `capacity` is what it leaves to machines, and was this many times as much.
  double over_machines = 1;
  /// Power of all nodes behind it, their cards at their datasheet's power, over the capacity of the
  /// bank, which follows from it; 0: the capacity is given.
  double oversubscription = 0;
  /// Into SiteSpec::path, of parts before this one: any of them can feed it. Empty: from outside.
  std::vector<std::size_t> from;
  int nodes = 0;          ///< fed by each unit; 0: it feeds other parts
  double usd_per_kw = 0;  ///< price of its units, by their capacity
  /// That a unit's batteries carry its capacity (IEC 62040-3's stored energy time at rated load);
  /// 0: it has none.
  Seconds bridge{};
  std::optional<GeneratorLaw> generator{};  ///< stands by, and starts when power is lost
};

struct SiteSpec {
  /// The first one is the run's first; repeated when they run out, which none does within a year.
  std::vector<SiteHour> hours;
  std::size_t hours_given = 0;                  ///< rows of the file; 0: there is none
  bool priced = false, counted_carbon = false;  ///< whether files say tariff and carbon
  double demand_usd_per_kw_month = 0;
  double export_usd_per_kwh = 0;
  Watts solar, wind;  ///< installed
  std::optional<BatterySpec> battery;
  std::optional<double> ramp_w_per_s;
  std::optional<CoolingPlant> cooling;
  std::vector<PowerPart> path;
  std::uint64_t seed = 1;
  std::vector<std::string> assumptions;
};

}  // namespace lockstep
