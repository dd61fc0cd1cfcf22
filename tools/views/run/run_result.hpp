/// What `lockstep run` prints of a step: CSV and tables.
#pragma once

#include <string>

#include "sim/answer/step_answer.hpp"
#include "tools/console/table.hpp"

namespace lockstep {

/// "1.80 s to 2.50 s (known release, dense, hopper: 207 published runs of 5 sources)"
std::string interval_text(double step_s, const PredictionInterval& interval);

/// "133 M USD to be spent (machines 120 M, network 8 M, building 5 M)".
std::string capital_text(const CapitalReport& capital);

/// What the fabric costs the step. Requires result.full_fabric.
std::string fabric_table(const RunResult& result, const TextStyle& style);

/// A header line and one line of values: the numeric fields of the first level of result_json(),
/// then the share of each bucket.
CsvText result_csv(const RunResult& result);

/// For people, at most 100 columns wide.
std::string result_table(const RunResult& result, const TextStyle& style);

}  // namespace lockstep
