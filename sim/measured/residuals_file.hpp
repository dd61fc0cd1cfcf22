/// Writes the residuals of the published runs as models/presets/accuracy has them, which
/// sim/scenario reads.
#pragma once

#include <string>

#include "models/accuracy/residuals.hpp"

namespace lockstep {

/// JSON, one row a line, errors with four decimals.
std::string residuals_json(const ResidualTable& table);

}  // namespace lockstep
