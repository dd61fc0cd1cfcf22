#include "sim/site/site_clock.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <span>

#include "models/power/site_power.hpp"
#include "models/site/weather.hpp"
#include "sim/site/power_path.hpp"

namespace lockstep {
namespace {

constexpr RunTime kHourTicks = 3'600'000'000'000;
constexpr Seconds kWholeHour{3600};
constexpr double kJoulesPerMwh = 3.6e9;
/// Between the numbers of two banks: cooling comes after any path.
constexpr std::uint32_t kCoolingNumber = 1'000'000;

Joules capacity_of(const BatterySpec& battery) {
  return Joules{battery.energy_mwh * kJoulesPerMwh};
}

}  // namespace

Watts drawn_in(RunBucket bucket, const SiteState& state, const MachineLevels& levels) {
  if (state.down) return {};
  switch (bucket) {
    case RunBucket::productive:
    case RunBucket::degraded:
    case RunBucket::lost:
      return state.training;
    case RunBucket::checkpoint:
    case RunBucket::detection:
      return std::min(state.machines.draw(levels.waiting),
                      std::max(state.training, state.machines.draw(levels.starting)));
    case RunBucket::restart:
      return state.machines.draw(levels.starting);
    case RunBucket::diagnosis:
    case RunBucket::repair_wait:
      return state.machines.draw(levels.idle);
  }
  assert(false && "every bucket is listed above");
  return {};
}

bool gives_back(const SitePlan& plan) {
  return plan.spec.battery && std::ranges::any_of(plan.spec.hours, [](const SiteHour& hour) {
           return std::isfinite(hour.limit.base_units());
         });
}

Watts renewable_power(const SiteSpec& spec, const SiteHour& hour) {
  return hour.solar * spec.solar + hour.wind * spec.wind;
}

BatteryFlow dispatched(const SitePlan& plan, std::int64_t hour, Watts demand, Joules stored,
                       Seconds length, Watts shave_above) {
  if (!plan.spec.battery) return {};
  const BatterySpec& battery = *plan.spec.battery;
  const SiteHour& at = plan.hour(hour);
  const double usd = plan.usd(hour);
  const Watts missing = demand - renewable_power(plan.spec, at);  // below 0: too much
  const Watts most_out = std::min(battery.power, stored / length);
  const Watts most = std::min(at.limit, shave_above);
  if (missing > most) return {.in = {}, .out = std::min(missing - most, most_out) * length};
  if (battery.discharge_above && usd >= *battery.discharge_above) {
    return {.in = {}, .out = std::clamp(missing, Watts{}, most_out) * length};
  }
  const Joules room = capacity_of(battery) - stored;
  Watts in = std::max(Watts{}, Watts{} - missing);
  // Hours that are dear enough to discharge have returned above.
  const bool cheap = !battery.charge_below || usd <= *battery.charge_below;
  if (cheap) in = std::max(in, battery.charge_power.value_or(battery.power));
  in = std::min(
      {in, battery.power, most - missing, std::max(Joules{}, room) / battery.efficiency / length});
  return {.in = std::max(Watts{}, in) * length, .out = {}};
}

Joules stored_after(const SitePlan& plan, Joules stored, const BatteryFlow& flow) {
  if (!plan.spec.battery) return stored;
  return stored + plan.spec.battery->efficiency * flow.in - flow.out;
}

namespace {

/// A month with the battery's rule, if the job trains all the time.
struct ShavedMonth {
  Watts highest;   ///< from the grid, of what it gives
  Joules lacking;  ///< of what it does not
};
ShavedMonth shaved_month(const SitePlan& plan, std::span<const Watts> draws, std::int64_t first,
                         Joules stored, Watts shave_above) {
  ShavedMonth out;
  for (std::size_t h = 0; h < draws.size(); ++h) {
    const auto number = first + static_cast<std::int64_t>(h);
    const SiteHour& hour = plan.hour(number);
    const BatteryFlow flow = dispatched(plan, number, draws[h], stored, kWholeHour, shave_above);
    stored = stored_after(plan, stored, flow);
    const Watts taken =
        draws[h] - renewable_power(plan.spec, hour) + (flow.in - flow.out) / kWholeHour;
    out.highest = std::max(out.highest, std::min(taken, hour.limit));
    if (taken > hour.limit) out.lacking += (taken - hour.limit) * kWholeHour;
  }
  return out;
}

}  // namespace

Watts lowest_shaved(const SitePlan& plan, std::int64_t first, Joules stored) {
  std::vector<Watts> draws;
  for (auto hour = first; plan.month(hour) == plan.month(first); ++hour) {
    draws.push_back(plan.trained_draw(hour));
  }
  const ShavedMonth as_it_is =
      shaved_month(plan, draws, first, stored, Watts{std::numeric_limits<double>::infinity()});
  constexpr double kRounding = 1e-9;
  // More power above which it stands in leaves no less in it: what can be held is an interval.
  const auto holds = [&](Watts above) {
    const ShavedMonth month = shaved_month(plan, draws, first, stored, above);
    return month.highest <= (1 + kRounding) * above &&
           month.lacking <= as_it_is.lacking + kRounding * capacity_of(*plan.spec.battery);
  };
  Watts low, high = as_it_is.highest;
  if (!holds(high)) return Watts{std::numeric_limits<double>::infinity()};
  constexpr int kHalvings = 50;
  for (int i = 0; i < kHalvings; ++i) {
    const Watts middle = (low + high) / 2;
    (holds(middle) ? high : low) = middle;
  }
  return high;
}

SiteClock::SiteClock(const SitePlan& plan, std::uint32_t trajectory)
    : plan_(plan),
      path_(plan.spec.path, plan.path_demand(RunTime{0}).per_place, plan.spec.seed, trajectory) {
  const SiteSpec& spec = plan.spec;
  if (spec.cooling) {
    cooling_.emplace_back(spec.cooling->bank, spec.seed, trajectory, kCoolingNumber);
    for (const CoolingStage& stage : spec.cooling->loop) {
      const auto number = static_cast<std::uint32_t>(cooling_.size());
      cooling_.emplace_back(stage.bank, spec.seed, trajectory, kCoolingNumber + number);
    }
  }
  if (spec.battery) stored_ = capacity_of(*spec.battery);  // full at the start
  machines_ = plan.machines(0);
  last_training_ = machines_.draw(plan.levels.training);
}

Watts SiteClock::shave_above(std::int64_t hour) const {
  const std::optional<BatterySpec>& battery = plan_.spec.battery;
  if (battery && battery->shave_above) return *battery->shave_above;
  Watts out{std::numeric_limits<double>::infinity()};
  for (const auto& [from, above] : aims_) {
    if (from <= hour) out = above;
  }
  return out;
}

/// Finds what the battery can hold over the month that begins.
void SiteClock::aim_battery() {
  if (!plan_.spec.battery || !plan_.spec.battery->shave_lowest) return;
  if (hour_ > 0 && plan_.month(hour_) == plan_.month(hour_ - 1)) return;
  aims_.emplace_back(hour_, lowest_shaved(plan_, hour_, stored_));
}

/// What the site draws until a moment of this hour. A stop counts as what its phase draws with all
/// that the plan lets it, however often the clock is asked within it: two callers agree.
void SiteClock::count_until(RunTime to, std::span<const RunStop> stops) {
  const auto drawn = [&](Watts machines, RunTime from, RunTime until) {
    return pue_ * machines * to_seconds(until - from);
  };
  const Watts training = down_ ? Watts{} : training_;
  for (; next_stop_ < stops.size() && stops[next_stop_].begin < to; ++next_stop_) {
    const RunStop& stop = stops[next_stop_];
    const RunTime begin = std::max(counted_, stop.begin);
    const RunTime end = std::max(begin, std::min(to, stop.end));
    SiteState state;
    state.machines = machines_;
    state.training = machines_.draw(plan_.levels.training);
    used_ += drawn(training, counted_, begin);
    used_ += drawn(drawn_in(stop.bucket, state, plan_.levels), begin, end);
    counted_ = end;
    if (stop.end > to || next_stop_ + 1 == stops.size()) break;  // it may go on
  }
  used_ += drawn(training, counted_, to);
  counted_ = to;
}

/// Books what the battery gave and took by what was drawn, as the site's books do.
void SiteClock::end_hour(std::span<const RunStop> stops) {
  if (!plan_.spec.battery) return;
  count_until((hour_ + 1) * kHourTicks, stops);
  const BatteryFlow flow =
      dispatched(plan_, hour_, used_ / kWholeHour, stored_, kWholeHour, shave_above(hour_));
  stored_ = stored_after(plan_, stored_, flow);
}

/// What the hour has, with the battery as it is at its start.
void SiteClock::begin_hour() {
  ++hour_;
  aim_battery();
  for (BankProcess& bank : cooling_) bank.advance(hour_ * kHourTicks);
  machines_ = plan_.machines(hour_ * kHourTicks);
  const SiteHour& hour = plan_.hour(hour_);
  const double outside = plan_.outside(hour);
  pue_ = power_usage_effectiveness(plan_.facility, outside);
  const bool wet = plan_.spec.cooling && plan_.spec.cooling->sink == HeatSink::wet;
  sink_ = wet ? wet_bulb_celsius(outside, hour.humidity) : outside;
  supply_ = hour.limit + renewable_power(plan_.spec, hour);
  if (!plan_.spec.battery) return;
  supply_ += std::min(plan_.spec.battery->power, stored_ / kWholeHour);
  budget_ = supply_ * kWholeHour;
  used_ = {};
  counted_ = hour_ * kHourTicks;
}

double SiteClock::coolant_at(Watts it) const {
  const CoolingPlant& plant = *plan_.spec.cooling;
  double out = coolant_celsius(plant.law, sink_, it, plant.bank.units - cooling_.front().down());
  for (std::size_t i = 0; i < plant.loop.size(); ++i) {
    const CoolingStage& stage = plant.loop[i];
    out += rise_kelvin(stage.approach_kelvin, stage.unit_heat, it,
                       stage.bank.units - cooling_[i + 1].down());
  }
  return out;
}

/// Whether machines that only wait are hotter than what chips stand: they turn themselves off.
bool SiteClock::too_hot_to_wait() const {
  if (!plan_.spec.cooling) return false;
  return coolant_at(machines_.draw(plan_.levels.idle)) >= plan_.spec.cooling->law.slowdown_celsius;
}

double SiteClock::coolest_share() const {
  if (!plan_.spec.cooling) return 1;
  const CoolingLaw& law = plan_.spec.cooling->law;
  const auto fits = [&](double share) {
    return share <= power_share_at(law, coolant_at(machines_.draw(plan_.table.at(share).it)));
  };
  double low = plan_.table.lowest().share, high = 1;
  if (fits(high)) return high;
  if (!fits(low)) return -1;
  for (int i = 0; i < 40; ++i) {
    const double middle = (low + high) / 2;
    (fits(middle) ? low : high) = middle;
  }
  return low;
}

/// Stops the job if nodes have lost their power path.
void SiteClock::meet_path(SiteState& state) {
  if (plan_.spec.path.empty()) return;
  const int lost = fed_nodes(plan_.spec.path) - path_.got().nodes;
  // A job that loses nodes stops, even if spares take over a moment later.
  state.down = state.abrupt = lost > nodes_down_;
  nodes_down_ = lost;
  state.generated = path_.generated();
  state.fuel = path_.fuel();
  const int fed = fed_nodes(plan_.spec.path) - nodes_down_;
  if (fed < needed_) {
    state.down = state.abrupt = true;
  } else if (state.down) {
    state.until = 0;  // a moment only
  }
  if (state.down) state.bound = SiteBound::path;
}

/// What the whole job could draw if its machines that are there got so much together.
Watts SiteClock::left_of(Watts supply) const {
  const Watts left = supply - machines_.standing;
  if (machines_.working > 0) return left / machines_.working;
  return left < Watts{} ? left : Watts{INFINITY};
}

/// Sets the fastest pace that cooling, power path and grid allow, by what they leave each machine.
void SiteClock::bind(SiteState& state) {
  const PaceTable& table = plan_.table;
  const double share = coolest_share();
  Watts most = share < 0 ? Watts{} : table.at(share).it;
  if (share < 1) state.bound = SiteBound::cooling;
  const auto limit = [&](Watts it, SiteBound by) {
    if (it >= most) return;
    most = it;
    state.bound = by;
  };
  const bool fed = !plan_.spec.path.empty();
  const Watts brought = fed ? left_of(path_.got().share * machines_.draw(plan_.levels.training))
                            : plan_.levels.training;
  limit(brought, SiteBound::path);
  const Watts supply = left_of(supply_ / pue_);
  limit(supply, SiteBound::grid);
  const std::optional<PacePoint> pace = table.under(most);
  state.speed = pace ? pace->speed : 0;
  const Watts left = std::min(supply, brought);
  const Watts waiting = std::min(std::max(left, plan_.levels.idle), plan_.levels.starting);
  state.training = machines_.draw(pace ? pace->it : waiting);
  // What is left does not even cover idle machines, or nothing cools them: they are switched off in
  // good order.
  if (!pace && (left < plan_.levels.idle || too_hot_to_wait())) state.down = true;
}

/// A rise of the pace is a ramp, of which half the time is lost. After a stop, the restart includes
/// the ramp.
void SiteClock::ramp_up(SiteState& state, RunTime now) {
  const Watts from = last_training_;
  const double from_speed = last_speed_;
  last_training_ = state.down ? machines_.draw(plan_.levels.training) : state.training;
  last_speed_ = state.down ? 1 : state.speed;
  const Watts rise = state.training - from;
  if (!plan_.spec.ramp_w_per_s || rise <= Watts{} || state.down) return;
  const double takes = pue_ * rise.base_units() / *plan_.spec.ramp_w_per_s;
  const double length = to_seconds(state.until - now).base_units();
  const double missing = takes <= length ? takes / 2 / length : 1 - length / takes / 2;
  state.training -= missing * rise;
  const double lower = missing * (state.speed - from_speed);
  state.ramp_took = std::max(0.0, lower);
  state.speed -= lower;
}

SiteState SiteClock::at(RunTime now, std::span<const RunStop> stops) {
  while (hour_ < now / kHourTicks) {
    if (hour_ >= 0) end_hour(stops);
    begin_hour();
  }
  if (plan_.spec.battery && now > counted_) {
    count_until(now, stops);
    // A limit is one of the hour's mean; at no moment does the battery give more than its power,
    // nor the grid less than its limit, whatever was drawn above it.
    const SiteHour& hour = plan_.hour(hour_);
    const Watts grid = hour.limit + renewable_power(plan_.spec, hour);
    const Seconds left = to_seconds((hour_ + 1) * kHourTicks - now);
    supply_ = std::clamp((budget_ - used_) / left, grid, grid + plan_.spec.battery->power);
  }
  SiteState state;
  state.until = (hour_ + 1) * kHourTicks;
  state.hour = hour_;
  path_.advance(now);
  state.until = std::min(state.until, path_.next_at());
  for (BankProcess& bank : cooling_) {
    bank.advance(now);
    state.until = std::min(state.until, bank.next_at());
  }
  if (plan_.fleet) {
    machines_ = plan_.machines(now);
    state.until = std::min(state.until, plan_.fleet->pace(now).until);
  }
  if (!plan_.spec.path.empty()) {
    const PathDemand demand = plan_.path_demand(now);
    needed_ = demand.needed;
    path_.load(now, demand.per_place);
    state.until = std::min(state.until, path_.next_at());
  }
  state.machines = machines_;
  state.pue = pue_;
  const RunTime until = state.until;
  meet_path(state);
  if (!state.down) bind(state);
  if (state.down) {
    state.speed = 0;
    state.training = Watts{};
  }
  state.until = state.until == 0 ? std::min(until, now + 1) : until;
  ramp_up(state, now);
  if (plan_.spec.cooling && !state.down) state.coolant = coolant_at(state.training);
  training_ = state.training;
  down_ = state.down;
  return state;
}

}  // namespace lockstep
