/// Power over the time of a step that repeats, or of a whole run.
#pragma once

#include <cstddef>
#include <vector>

#include "models/base/units.hpp"
#include "sim/step/power_corner.hpp"

namespace lockstep {

/// Constant between breakpoints: from start[i] to start[i + 1], the last until `end`.
struct PowerSeries {
  std::vector<Seconds> start;  ///< rising, from 0
  std::vector<Watts> power;
  Seconds end;

  [[nodiscard]] std::size_t size() const { return power.size(); }
  [[nodiscard]] Seconds until(std::size_t i) const { return i + 1 < size() ? start[i + 1] : end; }
  /// Appends a stretch that follows what there is; joins it to the last one when equal.
  void add(Seconds length, Watts level);
};

Joules energy(const PowerSeries& series);
Watts mean_power(const PowerSeries& series);  ///< 0 for an empty one
Watts peak_power(const PowerSeries& series);
Watts trough_power(const PowerSeries& series);

/// a + b x power, at every instant.
PowerSeries scaled(PowerSeries series, Watts a, double b);

/// What both draw together, as long as the shorter.
PowerSeries sum_of(const PowerSeries& a, const PowerSeries& b);

/// What a meter reads that averages over `window`, of a series that repeats: a polygon.
struct MeterReading {
  Watts low, high;
  Watts steepest;  ///< largest change within `window`
};
/// Exact: the extremes of a running mean of a step function lie where the window's ends meet
/// breakpoints. A window of 0 reads the series itself.
MeterReading metered(const PowerSeries& series, Seconds window);
/// Mean over `bins` equal parts of the period of what the meter reads, where each reading counts at
/// the middle of its window.
std::vector<Watts> metered_profile(const PowerSeries& series, Seconds window, int bins);

/// The largest change over `window`, per second: the running mean's slope is that difference.
/// W/s. Requires window > 0.
double steepest_ramp(const PowerSeries& series, Seconds window);

/// The same of a line from 0 to its last corner, that repeats.
double steepest_ramp(const std::vector<PowerCorner>& line, Seconds window);
/// Its means over stretches of at most `stair` each; flat ones stay whole. Of the same energy.
PowerSeries in_stairs(const std::vector<PowerCorner>& line, Seconds stair);

/// What the grid sees behind an energy store of `capacity` that holds the power at its mean as
/// long as it is neither empty nor full. Loses nothing; begins and ends a period as full.
PowerSeries smoothed(const PowerSeries& series, Joules capacity);

/// A period of machines whose power may change by `watts_per_s` at the most, in the long run. Where
/// they want more than they have they work as much slower as what they have above `standing` falls
/// short; where they want less they burn what is left over. `standing`: what they draw without
/// getting on, the trough at the most.
struct SlowedPeriod {
  Seconds period;
  Joules energy;
};
/// Exact: power is a line and work a parabola between breakpoints. Requires watts_per_s > 0.
SlowedPeriod rate_limited(const PowerSeries& series, Watts standing, double watts_per_s);

}  // namespace lockstep
