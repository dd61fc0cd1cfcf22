/// The page of `lockstep explore`: its form, and the places that explore.js fills with answers.
#pragma once

#include <string>

#include "tools/lockstep/explore/explorer.hpp"

namespace lockstep {

/// Throws UsageError where the program was built without its chart library (report/assets.hpp).
std::string explore_page(const Explorer& explorer);

}  // namespace lockstep
