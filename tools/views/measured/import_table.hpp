/// What `lockstep import` prints.
#pragma once

#include <string>
#include <vector>

#include "sim/measured/imported.hpp"
#include "tools/console/table.hpp"

namespace lockstep {

/// Kernels of a recording that a profile leaves out, the longest first.
std::string kernels_table(const std::vector<LeftOutKernel>& kernels, TextStyle style);

}  // namespace lockstep
