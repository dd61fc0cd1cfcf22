/// Results of a sweep as Parquet, written by DuckDB where its library is.
#pragma once

#include <string>

#include "sim/search/sweep/results_db.hpp"
#include "tools/views/sweep/results_csv.hpp"

namespace lockstep {

/// All points as Parquet (zstd), columns as of export_csv(): whole numbers as BIGINT, others as
/// DOUBLE, names as VARCHAR. libduckdb is loaded from the path in the environment variable
/// LOCKSTEP_DUCKDB, else by the system's search. Throws UsageError where there is none or it fails,
/// InputError where the file cannot be written; the file appears only when it is complete.
void export_parquet(const ResultsReader& results, const std::string& path);

}  // namespace lockstep
