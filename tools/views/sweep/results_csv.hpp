/// The results of a sweep as CSV.
#pragma once

#include <functional>

#include "sim/search/sweep/results_db.hpp"
#include "tools/console/written.hpp"

namespace lockstep {

/// All points as CSV, a header line first, without "json" and "hash".
void export_csv(const ResultsReader& results, const std::function<void(const CsvText&)>& write);

}  // namespace lockstep
