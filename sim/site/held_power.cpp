#include "sim/site/held_power.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/power/run_power.hpp"

namespace lockstep {
namespace {

constexpr double kHourSpan = 3600;
constexpr double kJoulesPerKilowattHour = 3.6e6;

}  // namespace

NodeDraw node_draw(Watts level, const StepPower& held, int nodes) {
  const Watts idle = (1 / held.holdings.nodes) * held.levels.idle.facility;
  const double reserved = held.holdings.nodes - nodes;
  return {.working = (1.0 / nodes) * (level - reserved * idle), .idle = idle};
}

double FleetEnergy::usd() const {
  double sum = 0;
  for (const EnergyPayment& each : paid) sum += each.usd;
  return sum;
}

FleetEnergy fleet_energy(const Fleet& fleet, const NodeDraw& draw, Seconds run,
                         const CostSpec& prices) {
  FleetEnergy out;
  if (prices.grams_per_kwh) out.grams = 0;
  const RunTime end = to_run_time(run);
  for (RunTime now = 0; now < end;) {
    const Seconds at = to_seconds(now);
    const double hour = std::floor(at.base_units() / kHourSpan) + 1;
    // The lots can change within an hour.
    const RunTime next = std::max(now + 1, to_run_time(Seconds{hour * kHourSpan}));
    const RunTime until = std::min({end, next, fleet.pace(now).until});
    const FleetStep there = fleet.at(now);
    const Joules drawn = draw.of(there) * to_seconds(until - now);
    const double kwh = drawn.base_units() / kJoulesPerKilowattHour;
    out.energy += drawn;
    if (out.grams) *out.grams += kwh * prices.grams_per_kwh->at(at);
    if (there.own > 0) {
      const double share = there.own_share();
      out.paid.push_back({.at = fleet.begins + at,
                          .usd = share * kwh * prices.usd_per_kwh.at(at),
                          .kwh = share * kwh});
    }
    now = until;
  }
  return out;
}

StepPower held_power(StepPower step, int nodes, int reserved, const HeldAt& at) {
  const double share = reserved / static_cast<double>(nodes);
  StepPower out = with_reserve(std::move(step), share);
  if (at.fleet != nullptr) take_peak(highest_draw(*at.fleet, at.run, out, nodes), out);
  return out;
}

StepPower held_power(const Scenario& scenario, const StepReport& step, int reserved,
                     const HeldAt& at) {
  return held_power(step_power(scenario, step), scenario.nodes, reserved, at);
}

PeakDraw peak_draw(const HighestDraw& highest, const StepPower& held, double draw) {
  const Watts mean = held.levels.training.facility;
  const double swings = draw * highest.busy;
  return {.metered = highest.level + swings * (held.facility_meter.high - mean),
          .instant = highest.level + swings * (peak_power(held.facility) - mean)};
}

HighestDraw highest_draw(const Fleet& fleet, Seconds run, const StepPower& held, int nodes) {
  const NodeDraw draw = node_draw(held.levels.training.facility, held, nodes);
  const Seconds ends = fleet.begins + run;
  HighestDraw out{.level = {}, .busy = 0};
  for (std::size_t i = 0; i < fleet.steps.size(); ++i) {
    const FleetStep& step = fleet.steps[i];
    const bool over = i + 1 < fleet.steps.size() && fleet.steps[i + 1].at <= fleet.begins;
    const Watts level = draw.of(step) + step.away * draw.idle;  // at times all are there
    if (over || step.at >= ends || level <= out.level) continue;
    out = {.level = level, .busy = step.working() / nodes};
  }
  return out;
}

void take_peak(const HighestDraw& highest, StepPower& held) {
  const PeakDraw peak = peak_draw(highest, held);
  held.site_peak = peak.metered;
  held.holdings.facility_peak = peak.instant;
}

}  // namespace lockstep
