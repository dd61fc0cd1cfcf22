/// Shares in per cent that tell little from nothing.
#pragma once

#include <string>

namespace lockstep {

/// "61.3 %"; "<0.1 %" of what is there but would round to nothing.
std::string few_percent(double share, int decimals);
/// A part of a whole with one decimal: "<0.1 %" of little, and what would round to all beside other
/// parts has more decimals: "99.95 %". Each is the nearest tenth, so that parts may add up to a
/// tenth or two beside 100.
std::string part_percent(double share);

}  // namespace lockstep
