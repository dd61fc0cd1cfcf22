/// What is not known for sure, as a distribution given by its quantiles: the same bits everywhere.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace lockstep {

enum class DistributionLaw : std::uint8_t {
  fixed,       ///< always `likely`
  uniform,     ///< from `low` to `high`
  triangular,  ///< from `low` to `high`, densest at `likely`
  lognormal,   ///< the median is `likely`; 5 % lie below `low` and 5 % above `high`, normally in
               ///< the logarithm on either side
};
inline constexpr std::array<std::string_view, 4> kDistributionLaws{"fixed", "uniform", "triangular",
                                                                   "lognormal"};

/// Requires 0 < low <= likely <= high; where the law has no use for `likely`, any.
struct Distribution {
  DistributionLaw law = DistributionLaw::fixed;
  double low = 1, likely = 1, high = 1;

  /// The value that a share `p` of all lies below, 0 < p < 1.
  [[nodiscard]] double quantile(double p) const;
  [[nodiscard]] double median() const { return quantile(0.5); }
};

}  // namespace lockstep
