/// Prints validations: of rows of whole runs, and of points of kernels and collectives.
#pragma once

#include <string>
#include <vector>

#include "sim/measured/point_table.hpp"
#include "sim/measured/row_validation.hpp"
#include "tools/console/table.hpp"

namespace lockstep {

/// {"rows": [...], "summary": {...}}; tools/lockstep/README.md explains every field.
JsonText rows_json(const std::vector<RowPrediction>& predictions);
/// One line per row, the fields of the JSON.
CsvText rows_csv(const std::vector<RowPrediction>& predictions);
/// Row by row, then the summaries; at most 100 columns wide.
std::string rows_table(const std::vector<RowPrediction>& predictions, const TextStyle& style);

/// {"points": [...], "summary": {...}}.
JsonText points_json(const PointTable& table);
CsvText points_csv(const PointTable& table);
std::string points_table(const PointTable& table, const TextStyle& style);

}  // namespace lockstep
