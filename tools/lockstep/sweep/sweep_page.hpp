/// The results of a sweep as a page.
#pragma once

#include <string>

#include "tools/lockstep/sweep/results_db.hpp"
#include "tools/lockstep/sweep/summary.hpp"
#include "tools/lockstep/sweep/sweep.hpp"

namespace lockstep {

/// The page of `lockstep sweep --report`: parallel axes of all points (at most kSweepLines, evenly
/// chosen), the front of the objective and what it costs, the objective over each axis, the best
/// points. Throws UsageError without a chart library (assets.hpp), InputError for the database.
std::string sweep_page(const Sweep& sweep, const SweepSummary& summary);

inline constexpr std::size_t kSweepLines = 1500;

}  // namespace lockstep
