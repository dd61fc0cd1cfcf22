#include "sim/site/smoothing_ways.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <string>

#include "sim/power/run_power.hpp"
#include "sim/scenario/stagger.hpp"
#include "sim/site/averaging_store.hpp"
#include "sim/step/step.hpp"

namespace lockstep {
namespace {

constexpr int kHalvings = 8;
constexpr int kMostStairs = 8;
constexpr int kSpreads = 6;  ///< that are tried, each half of the one before

SmoothingWay way_of(std::string_view name, std::string_view words, const StepPower& power) {
  SmoothingWay out{.name = name, .words = words};
  out.ramp_w_per_s = power.ramp_w_per_s;
  out.step = Seconds{power.step_s};
  out.energy = power.energy();
  return out;
}

/// The store of the shortest average that keeps to the ramp. It loses nothing.
SmoothingWay with_store(const Scenario& scenario, const StepPower& power, double ramp) {
  SmoothingWay out = way_of("store", "energy stored in power supplies that average", power);
  const Seconds window = scenario.power->ramp_window;
  const Seconds over = shortest_average(power.facility, window, ramp);
  out.ramp_w_per_s = steepest_ramp(averaged(power.facility, over), window);
  out.store = store_to_average(power.facility, over) / power.supply / scenario.gpus();
  return out;
}

/// The lowest floor.
SmoothingWay with_floor(const Scenario& scenario, const StepReport& step, const StepPower& power,
                        double reserve, double ramp) {
  Scenario changed = scenario;
  Watts& floor = changed.power->smoothing.floor;
  const auto at = [&](Watts watts) {
    floor = watts;
    SmoothingWay out = way_of("floor", "cards burn up to a floor",
                              with_reserve(step_power(changed, step), reserve));
    out.floor = watts;
    out.keeps = out.ramp_w_per_s <= ramp;
    return out;
  };
  double low = scenario.power->smoothing.floor.base_units();
  double high = power.gpu_peak.base_units();
  SmoothingWay best = at(Watts{high});
  for (int i = 0; i < kHalvings && best.keeps; ++i) {
    const double middle = (low + high) / 2;
    const SmoothingWay tried = at(Watts{middle});
    (tried.keeps ? high : low) = middle;
    if (tried.keeps) best = tried;
  }
  return best;
}

SmoothingWay with_slower_ramps(const StepPower& power, double ramp) {
  SmoothingWay out =
      way_of("slower_ramps", "cards gain power slowly, and burn as they lose it", power);
  if (out.ramp_w_per_s <= ramp) return out;
  const SlowedPeriod slowed = rate_limited(power.facility, power.levels.waiting.facility, ramp);
  out.ramp_w_per_s = ramp;
  out.step = slowed.period;
  out.energy = slowed.energy;
  return out;
}

/// The shortest of some spreads, each half of the one before.
SmoothingWay with_stagger(const Scenario& scenario, const StepPower& power, double reserve,
                          double ramp) {
  Scenario changed = scenario;
  StaggerSpec& stagger = changed.power->smoothing.stagger;
  stagger.groups = std::min(kMostStairs, most_stagger_groups(scenario.job.parallelism));
  std::optional<SmoothingWay> best;
  double over = power.step_s;
  for (int i = 0; i < kSpreads; ++i, over /= 2) {
    stagger.over = Seconds{over};
    const StepReport step = simulate_step(changed, {.record_timeline = true, .keep_actors = true});
    SmoothingWay tried = way_of("stagger", "replicas begin one group after the other",
                                with_reserve(step_power(changed, step), reserve));
    tried.over = stagger.over;
    tried.groups = stagger.groups;
    tried.keeps = tried.ramp_w_per_s <= ramp;
    const bool better = !best || tried.keeps || tried.ramp_w_per_s < best->ramp_w_per_s;
    if (best && best->keeps && !tried.keeps) break;
    if (better) best = tried;
  }
  return *best;
}

}  // namespace

std::string smoothing_words(const SmoothingWay& way) {
  std::string out(way.words);
  if (way.store) out += fmt::format(", {:.3g} J a GPU", way.store->base_units());
  if (way.floor) out += fmt::format(" of {:.0f} W", way.floor->base_units());
  if (way.over) {
    out += fmt::format(", {} of them over {:.3g} s", way.groups, way.over->base_units());
  }
  return out;
}

std::vector<SmoothingWay> smoothing_ways(const Scenario& scenario, const StepReport& step,
                                         const StepPower& power, double reserve,
                                         double ramp_w_per_s) {
  SmoothingWay now = way_of("none", "as it is", power);
  now.keeps = now.ramp_w_per_s <= ramp_w_per_s;
  std::vector<SmoothingWay> out{now};
  if (now.keeps) return out;
  out.push_back(with_store(scenario, power, ramp_w_per_s));
  out.push_back(with_floor(scenario, step, power, reserve, ramp_w_per_s));
  out.push_back(with_slower_ramps(power, ramp_w_per_s));
  const SmoothingSpec& smoothing = scenario.power->smoothing;
  if (smoothing.stagger.over <= Seconds{} && smoothing.ramp_w_per_s <= 0 &&
      !stagger_problem(scenario)) {
    out.push_back(with_stagger(scenario, power, reserve, ramp_w_per_s));
  }
  return out;
}

}  // namespace lockstep
