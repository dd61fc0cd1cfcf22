/// How numbers of jobs are spread: waits, completion times, slowdowns.
#pragma once

#include <optional>
#include <vector>

namespace lockstep {

/// Of some numbers. Quantiles are those of the numbers themselves: the least one that so many are
/// not above.
struct QueueSpread {
  double mean = 0, p50 = 0, p90 = 0, p99 = 0, most = 0;
};
/// Nothing of none.
std::optional<QueueSpread> spread_of(std::vector<double> values);

}  // namespace lockstep
