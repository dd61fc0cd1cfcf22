#include "tools/calibrate/timing.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "sim/measured/statistics.hpp"

namespace lockstep {
namespace {

/// 0.1 % of it are 2 us: what two events and the gap between two graphs cost.
constexpr Seconds kShortestSample{2e-3};
constexpr Seconds kSustainedSample{5e-3};
/// A graph's nodes cost memory and time to instantiate, so that the sample's length asks for no
/// more than 512. Cold operands may: 1,600 sets of the smallest product are twice the L2 cache of
/// an H100.
constexpr int kMostLaunches = 512, kMostSets = 8192;
/// Samples of a point: many of short kernels, fewer of long ones, whose times spread less.
constexpr int kMostSamples = 11, kFewestSamples = 5;
constexpr Seconds kTimedPerPoint{0.04};
/// A rest of so many times the work leaves a duty of a third.
constexpr double kRest = 2;
constexpr Seconds kShortestPause{2e-3};

int launches_for(Seconds one, int sets, Seconds sample) {
  assert(one > Seconds{} && sets >= 1);
  const double enough = std::clamp(std::ceil(sample / one), 1.0, double{kMostLaunches});
  return std::max(static_cast<int>(enough), sets);
}

}  // namespace

Timing timing_of(const std::vector<double>& seconds) {
  const double middle = median(seconds);
  assert(middle > 0);
  return {Seconds{middle}, (quantile(seconds, 0.75) - quantile(seconds, 0.25)) / middle};
}

Repeats burst_repeats(Seconds one, int sets) {
  const int launches = launches_for(one, sets, kShortestSample);
  const Seconds sample = launches * one;
  const double samples = std::floor(static_cast<double>(kTimedPerPoint / sample));
  return {.launches = launches,
          .samples =
              static_cast<int>(std::clamp(samples, double{kFewestSamples}, double{kMostSamples})),
          .pause = std::max(kShortestPause, kRest * 2 * sample)};
}

int sustained_launches(Seconds one, int sets) { return launches_for(one, sets, kSustainedSample); }

int rotating_sets(double bytes, double l2, double room) {
  assert(bytes > 0);
  const double wanted = std::ceil(2 * l2 / bytes) + 1;
  const double fitting = std::floor(room / bytes);
  return static_cast<int>(std::clamp(std::min(wanted, fitting), 1.0, double{kMostSets}));
}

}  // namespace lockstep
