/// Shares in per cent that tell little from nothing.
#pragma once

#include <string>

namespace lockstep {

/// "61.3 %"; "<0.1 %" of what is there but would round to nothing.
std::string few_percent(double share, int decimals);
/// A part of a whole with one decimal, `printed` in per cent so that all parts add up: what is
/// there but got no tenth is "<0.1 %", and what would round to all beside other parts has more
/// decimals: "99.95 %".
std::string part_percent(double printed, double share);

}  // namespace lockstep
