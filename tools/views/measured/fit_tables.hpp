/// What `lockstep fit` prints.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "models/accuracy/residuals.hpp"
#include "sim/measured/fit.hpp"
#include "tools/console/table.hpp"

namespace lockstep {

/// Each constant before and after.
std::string table_of_constants(const std::vector<FitParameter>& parameters, const TextStyle& style);

/// Errors of one source's rows, in shares.
struct SourceErrors {
  std::vector<double> prior, fitted, left_out;
};

/// Errors by source: of the prior, fitted, and with the source left out.
std::string table_of_errors(const std::map<std::string, SourceErrors>& sources,
                            const TextStyle& style);

/// Errors of composed stacks by source.
std::string table_of_composed(const ResidualTable& residuals, const TextStyle& style);

}  // namespace lockstep
