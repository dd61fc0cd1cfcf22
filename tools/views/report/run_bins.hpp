/// One trajectory, thinned for a chart: its wall time bin by bin, its causes of failure row by row.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "sim/run/summary.hpp"
#include "sim/run/trajectory.hpp"

namespace lockstep {

inline constexpr std::size_t kCauseRows = 7;  ///< and one more for all other causes

/// Wall time in equal bins: how much of each went into which bucket. Adds up to the trajectory's
/// own books, to the nanosecond.
struct RunBins {
  RunTime wall = 0;
  std::vector<std::array<RunTime, kRunBuckets>> spent;

  /// Where a bin begins; of the number of bins: the wall time.
  [[nodiscard]] RunTime begin(std::size_t bin) const;
};
/// At most `most` bins, of about a round time. Requires phases, as RunDetail::timeline gives them.
RunBins bin_phases(const TrajectoryResult& run, std::size_t most);

/// Row of each failure mode in the chart: those that cost most in the mean run have one each.
struct CauseRows {
  std::vector<std::string> names;
  std::vector<std::size_t> row_of_mode;
};
CauseRows cause_rows(const RunSummary& summary);

}  // namespace lockstep
