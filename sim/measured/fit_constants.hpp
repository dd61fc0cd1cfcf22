/// The numbers of a scenario that a fit may change, by the path that its preset has for them.
#pragma once

#include <string_view>

#include "sim/measured/fit.hpp"
#include "sim/scenario/scenario.hpp"

namespace lockstep {

/// The constant in this scenario; null if the scenario does not depend on it.
/// Throws std::out_of_range for a path that is no constant.
double* fit_constant(const FitParameter& parameter, Scenario& scenario);

}  // namespace lockstep
