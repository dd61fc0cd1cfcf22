/// Published runs against their predictions, as a page that can be searched and sorted.
#pragma once

#include <string>
#include <vector>

#include "sim/measured/row_validation.hpp"

namespace lockstep {

/// The page of `lockstep validate --report` for rows of whole runs: errors by kind, source, GPU and
/// software, predicted over measured, every row. Throws UsageError without a chart library
/// (assets.hpp).
std::string rows_page(const std::vector<RowPrediction>& predictions, const std::string& path);

}  // namespace lockstep
