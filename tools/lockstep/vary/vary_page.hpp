/// The answers over one or two values of a scenario, as a page.
#pragma once

#include <string>

#include "tools/lockstep/vary/vary.hpp"

namespace lockstep {

/// The page of `lockstep run --vary --report`: the number that the kind of answer is about over the
/// values, with its interval; for two axes a line for each value of the second; small charts of the
/// other numbers; a table of all points. Of several collectives the same of each. Throws UsageError
/// without a chart library (assets.hpp).
std::string vary_page(const Varied& varied);

}  // namespace lockstep
