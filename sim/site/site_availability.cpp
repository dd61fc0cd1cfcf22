#include "sim/site/site_availability.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "models/power/site_power.hpp"
#include "models/site/weather.hpp"
#include "sim/site/power_path.hpp"
#include "sim/site/site_clock.hpp"
#include "sim/site/standby_figures.hpp"

namespace lockstep {
namespace {

constexpr double kUnlikely = 1e-12;
constexpr std::size_t kMostStates = 20'000;
constexpr RunTime kTicksOfHour = 3'600'000'000'000;

/// Shares of the time of a path.
struct PathShare {
  double brings = 0;     ///< all that nodes want
  double blackouts = 0;  ///< would, if its units that bring power from outside were not all down
};

/// Goes through the states of a path, one bank after the other.
class PathStates {
 public:
  PathStates(const SitePlan& plan, const PathDemand& demand)
      : plan_(plan), demand_(demand), outside_(only_bank_outside(plan.spec.path)) {
    for (const PowerPart& part : plan.spec.path) {
      laws_.push_back(part.generator ? std::vector<double>{} : units_down(part.bank));
      down_.push_back(part.generator ? part.bank.units : 0);
    }
  }

  /// None: there are too many.
  std::optional<PathShare> shares() {
    go(0, 1);
    if (tried_ > kMostStates) return std::nullopt;
    return sum_;
  }

 private:
  void go(std::size_t part, double p) {
    if (tried_ > kMostStates) return;
    if (part == laws_.size()) {
      ++tried_;
      if (brings()) {
        sum_.brings += p;
      } else if (outside_ && down_[*outside_] == plan_.spec.path[*outside_].bank.units) {
        const int all = std::exchange(down_[*outside_], 0);
        if (brings()) sum_.blackouts += p;
        down_[*outside_] = all;
      }
      return;
    }
    if (laws_[part].empty()) {
      go(part + 1, p);
      return;
    }
    for (std::size_t down = 0; down < laws_[part].size(); ++down) {
      const double both = p * laws_[part][down];
      if (both < kUnlikely) continue;
      down_[part] = static_cast<int>(down);
      go(part + 1, both);
    }
    down_[part] = 0;
  }
  [[nodiscard]] bool brings() const {
    return brings_all(plan_.spec.path, down_, demand_.per_place, demand_.needed);
  }

  const SitePlan& plan_;
  PathDemand demand_;
  std::optional<std::size_t> outside_;
  std::vector<std::vector<double>> laws_;  ///< of units that are down, by part; empty: a generator
  std::vector<int> down_;
  std::size_t tried_ = 0;
  PathShare sum_;
};

/// Share of the time in which the path brings what nodes want, from moment to moment: each demand
/// is looked at once.
class PathShares {
 public:
  explicit PathShares(const SitePlan& plan) : plan_(plan) {}

  /// None: there are too many states.
  std::optional<PathShare> at(RunTime now) {
    const PathDemand demand = plan_.path_demand(now);
    const std::pair key{demand.per_place.base_units(), demand.needed};
    const auto known = known_.find(key);
    if (known != known_.end()) return known->second;
    return known_[key] = PathStates(plan_, demand).shares();
  }

 private:
  const SitePlan& plan_;
  std::map<std::pair<double, int>, std::optional<PathShare>> known_;
};

/// A rise of coolant for each watt of heat, and how likely it is.
struct LikelyRise {
  double kelvin_per_watt = 0, p = 0;
};

/// Of all stages of a loop together: smallest first, each with how likely it is no greater. States
/// without any unit of a stage are left out.
std::vector<LikelyRise> loop_rises(const CoolingPlant& plant) {
  std::vector<LikelyRise> out{{.kelvin_per_watt = 0, .p = 1}};
  for (const CoolingStage& stage : plant.loop) {
    const std::vector<double> law = units_down(stage.bank);
    std::vector<LikelyRise> next;
    for (const LikelyRise& before : out) {
      for (int down = 0; down < stage.bank.units; ++down) {
        const double both = before.p * law[static_cast<std::size_t>(down)];
        if (both < kUnlikely) continue;
        next.push_back({before.kelvin_per_watt + rise_kelvin(stage.approach_kelvin, stage.unit_heat,
                                                             Watts{1}, stage.bank.units - down),
                        both});
      }
    }
    out = std::move(next);
  }
  std::ranges::sort(out, {}, &LikelyRise::kelvin_per_watt);
  double sum = 0;
  for (LikelyRise& each : out) each.p = sum += each.p;
  return out;
}

/// The warmest coolant with which chips let their cards draw what the job wants, which may be less
/// than their limit.
double warmest_at_full_speed(const SitePlan& plan) {
  double share = 1;
  for (const PacePoint& point : plan.table.points()) {
    if (point.speed >= kFullSpeed * plan.table.full().speed) share = std::min(share, point.share);
  }
  const CoolingLaw& law = plan.spec.cooling->law;
  return law.slowdown_celsius - share * (law.slowdown_celsius - law.rated_celsius);
}

/// How likely the coolant is no warmer than that.
class CoolEnough {
 public:
  CoolEnough(const CoolingPlant& plant, double warmest)
      : plant_(plant), warmest_(warmest), law_(units_down(plant.bank)), rises_(loop_rises(plant)) {}

  [[nodiscard]] double at(double sink, Watts heat) const {
    double sum = 0;
    for (int down = 0; down < plant_.bank.units; ++down) {
      const double p = law_[static_cast<std::size_t>(down)];
      if (p < kUnlikely) continue;
      const double left =
          warmest_ - coolant_celsius(plant_.law, sink, heat, plant_.bank.units - down);
      if (left < -kRounding) break;  // with fewer units it is warmer still
      // Within rounding: a plant that is made for its hottest hour is enough in it.
      const double most = (left + kRounding) / std::max(1.0, heat.base_units());
      const auto end = std::ranges::upper_bound(rises_, most, {}, &LikelyRise::kelvin_per_watt);
      if (end != rises_.begin()) sum += p * std::prev(end)->p;
    }
    return sum;
  }

 private:
  static constexpr double kRounding = 1e-9;  // K
  const CoolingPlant& plant_;
  double warmest_;  ///< degrees Celsius
  std::vector<double> law_;
  std::vector<LikelyRise> rises_;
};

}  // namespace

SiteAvailability site_availability(const SitePlan& plan, std::size_t hours) {
  const SiteSpec& spec = plan.spec;
  SiteAvailability out;
  PathShares paths(plan);
  const std::optional<StandbyFigures> standby = standby_figures(plan);
  // Of blackouts, how much batteries and generators cover.
  const double covered = standby && standby->blackouts ? 1 - standby->blackouts->without : 0;
  bool counted = !spec.path.empty();
  if (const auto now = counted && hours == 0 ? paths.at(0) : std::nullopt) out.path = now->brings;
  std::optional<CoolEnough> cool;
  if (spec.cooling) cool.emplace(*spec.cooling, warmest_at_full_speed(plan));
  const bool wet = spec.cooling && spec.cooling->sink == HeatSink::wet;
  double path_sum = 0, covered_sum = 0, cooled = 0, supplied = 0, both = 0, both_covered = 0;
  bool limited = false;
  Joules stored;
  if (spec.battery) stored = Joules{spec.battery->energy_mwh * 3.6e9};  // full at the start
  Watts above{std::numeric_limits<double>::infinity()};  // the battery shaves nothing
  if (spec.battery && spec.battery->shave_above) above = *spec.battery->shave_above;
  for (std::size_t h = 0; h < hours; ++h) {
    const auto number = static_cast<std::int64_t>(h);
    const SiteHour& hour = plan.hour(number);
    const double outside = plan.outside(hour);
    const Watts machines = plan.machines(number * kTicksOfHour).draw(plan.levels.training);
    const Watts wanted = power_usage_effectiveness(plan.facility, outside) * machines;
    if (spec.battery && spec.battery->shave_lowest &&
        (number == 0 || plan.month(number) != plan.month(number - 1))) {
      above = lowest_shaved(plan, number, stored);
    }
    const BatteryFlow flow = dispatched(plan, number, wanted, stored, Seconds{3600}, above);
    stored = stored_after(plan, stored, flow);
    const Watts supply =
        hour.limit + renewable_power(spec, hour) + (flow.out - flow.in) / Seconds{3600};
    limited = limited || std::isfinite(hour.limit.base_units());
    const double grid = supply >= (1 - 1e-12) * wanted ? 1 : 0;
    const double cooling =
        cool ? cool->at(wet ? wet_bulb_celsius(outside, hour.humidity) : outside, machines) : 1;
    PathShare path{.brings = 1, .blackouts = 0};
    if (counted) {
      const std::optional<PathShare> known = paths.at(number * kTicksOfHour);
      counted = known.has_value();
      path = known.value_or(path);
    }
    const double with_standby = path.brings + covered * path.blackouts;
    path_sum += path.brings;
    covered_sum += with_standby;
    cooled += cooling;
    supplied += grid;
    both += path.brings * cooling * grid;
    both_covered += with_standby * cooling * grid;
  }
  const double all_hours = std::max(1.0, static_cast<double>(hours));
  if (cool && hours > 0) out.cooling = cooled / all_hours;
  if (limited) out.grid = supplied / all_hours;
  if (hours > 0 && counted) out.path = path_sum / all_hours;
  if (hours > 0 && (spec.path.empty() || out.path)) out.all = both / all_hours;
  if (hours > 0 && counted && standby && standby->blackouts) {
    out.path_with_standby = covered_sum / all_hours;
    out.all_with_standby = both_covered / all_hours;
  }
  return out;
}

}  // namespace lockstep
