/// Plays the load of a measured row of serving.
#pragma once

#include <string>

#include "sim/measured/serving_rows.hpp"
#include "sim/serving/serving_figures.hpp"

namespace lockstep {

struct ServedRow {
  std::string skipped;  ///< why there is nothing; empty: there is
  ServingFigures figures;
};
/// Requires a row that is not skipped.
ServedRow predict_serving(const ServingRow& row, const PresetStore& presets);

/// What stands beside a figure of the row, in its unit.
double predicted_measure(const ServingMeasure& of, const ServingRow& row,
                         const ServingFigures& figures);

}  // namespace lockstep
