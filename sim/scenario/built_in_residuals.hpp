/// The errors of published runs that ship, as tables that the program was compiled with: reading
/// their file would take longer than many steps do.
#pragma once

#include <string>

#include "models/accuracy/residuals.hpp"

namespace lockstep {

/// Whether the file has the bytes that the tables were made of. Never where a program was compiled
/// without them.
bool has_built_in_residuals(const std::string& file);

/// What read_residuals() makes of those bytes. Requires that some file has them.
ResidualTable built_in_residuals();

}  // namespace lockstep
