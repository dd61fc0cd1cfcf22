/// An energy store behind power supplies that averages what a step draws, so that the grid sees its
/// edges as slopes.
#pragma once

#include <vector>

#include "models/base/units.hpp"
#include "sim/power/power_series.hpp"
#include "sim/step/power_corner.hpp"

namespace lockstep {

/// What the grid sees where supplies average over `over`, half of it ahead, of a series that
/// repeats and is known: a line from 0 to the end of the period. Loses nothing. Requires 0 < over
/// <= period.
std::vector<PowerCorner> averaged(const PowerSeries& series, Seconds over);

/// The store that this takes: how far what is drawn and what is delivered drift apart. An edge of
/// H watts by itself takes H over / 8. Exact: between corners the drift is a parabola.
Joules store_to_average(const PowerSeries& series, Seconds over);

/// The shortest average, found by halving, of which no change over `window` is steeper than `ramp`,
/// W/s. Requires a series that is steeper, and ramp > 0.
Seconds shortest_average(const PowerSeries& series, Seconds window, double ramp);

}  // namespace lockstep
