#include "sim/site/averaging_store.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace lockstep {
namespace {

/// Energy from 0 to any time of a series that repeats.
class RepeatedEnergy {
 public:
  explicit RepeatedEnergy(const PowerSeries& series) : series_(series) {
    double sum = 0;
    for (std::size_t i = 0; i < series.size(); ++i) {
      until_start_.push_back(sum);
      sum += series.power[i].base_units() * (series.until(i) - series.start[i]).base_units();
    }
    of_period_ = sum;
  }

  double operator()(double t) const {
    const double period = series_.end.base_units(), turns = std::floor(t / period);
    const Seconds in_period{std::clamp(t - turns * period, 0.0, period)};
    const auto after = std::ranges::upper_bound(series_.start, in_period);
    const auto i =
        static_cast<std::size_t>(std::max(after - series_.start.begin() - 1, std::ptrdiff_t{0}));
    return turns * of_period_ + until_start_[i] +
           series_.power[i].base_units() * (in_period - series_.start[i]).base_units();
  }

 private:
  const PowerSeries& series_;
  std::vector<double> until_start_;
  double of_period_ = 0;
};

/// Times of a period at which what is drawn, or its average, changes its course.
std::vector<double> course_changes(const PowerSeries& series, double over) {
  const double period = series.end.base_units();
  std::vector<double> out{0, period};
  for (const Seconds start : series.start) {
    const double at = start.base_units();
    for (const double t : {at, at - over / 2, at + over / 2}) {
      out.push_back(t - std::floor(t / period) * period);
    }
  }
  std::ranges::sort(out);
  const auto repeated = std::ranges::unique(out);
  out.erase(repeated.begin(), repeated.end());
  return out;
}

}  // namespace

std::vector<PowerCorner> averaged(const PowerSeries& series, Seconds over) {
  const double w = over.base_units();
  assert(w > 0 && over <= series.end);
  const RepeatedEnergy energy_until(series);
  std::vector<PowerCorner> out;
  for (const double t : course_changes(series, w)) {
    out.push_back({.s = t, .watts = (energy_until(t + w / 2) - energy_until(t - w / 2)) / w});
  }
  return out;
}

Joules store_to_average(const PowerSeries& series, Seconds over) {
  const std::vector<PowerCorner> line = averaged(series, over);
  double drift = 0, least = 0, most = 0;
  std::size_t stretch = 0;
  for (std::size_t i = 1; i < line.size(); ++i) {
    const PowerCorner &from = line[i - 1], &to = line[i];
    const double length = to.s - from.s, middle = from.s + length / 2;
    while (series.until(stretch).base_units() < middle) ++stretch;
    const double drawn = series.power[stretch].base_units();
    const double begin = drawn - from.watts, end = drawn - to.watts;
    if (begin * end < 0) {
      const double turn = drift + begin * begin / (begin - end) * length / 2;
      least = std::min(least, turn);
      most = std::max(most, turn);
    }
    drift += (begin + end) / 2 * length;
    least = std::min(least, drift);
    most = std::max(most, drift);
  }
  return Joules{most - least};
}

Seconds shortest_average(const PowerSeries& series, Seconds window, double ramp) {
  assert(ramp > 0);
  constexpr int kHalvings = 40;
  Seconds low{}, high = series.end;  // over which nothing is left of the step
  for (int i = 0; i < kHalvings; ++i) {
    const Seconds middle = (low + high) / 2;
    (steepest_ramp(averaged(series, middle), window) <= ramp ? high : low) = middle;
  }
  return high;
}

}  // namespace lockstep
