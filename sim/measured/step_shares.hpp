/// What decides how long a step takes: the share of it that each part of the description governs.
#pragma once

#include <array>
#include <string_view>

#include "sim/scenario/scenario.hpp"

namespace lockstep {

/// A part of the description that may be wrong by a factor.
struct DescriptionPart {
  std::string_view words;  ///< "time of all kernels"
  double prior;            ///< standard deviation of the factor's logarithm; assumed
  /// Makes the part slower by a factor.
  void (*slow)(Scenario& scenario, double factor);
};

inline constexpr std::size_t kDescriptionParts = 5;
/// The first is the level of kernels.
const std::array<DescriptionPart, kDescriptionParts>& description_parts();

/// d log(step) / d log(factor) of each part, by a central difference of 10 % either way.
using StepShares = std::array<double, kDescriptionParts>;
StepShares step_shares(const Scenario& scenario);

}  // namespace lockstep
