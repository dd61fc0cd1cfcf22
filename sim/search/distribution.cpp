#include "sim/search/distribution.hpp"

#include <cassert>
#include <cmath>

#include "sim/core/random.hpp"

namespace lockstep {
namespace {

/// Source: Kotz and van Dorp 2004, "Beyond Beta", section 1.2: the inverse of the distribution.
double triangular_quantile(const Distribution& d, double p) {
  const double width = d.high - d.low;
  if (width <= 0) return d.low;
  if (p * width <= d.likely - d.low) return d.low + std::sqrt(p * width * (d.likely - d.low));
  return d.high - std::sqrt((1 - p) * width * (d.high - d.likely));
}

/// Two halves of normal distributions that meet at the median: `low` and `high`, the 5th and the
/// 95th percentile, need not lie evenly around it.
double lognormal_quantile(const Distribution& d, double p) {
  const double deviations = normal_quantile(p) / normal_quantile(0.95);
  const double end = deviations < 0 ? d.low : d.high;
  if (deviations == 0 || end == d.likely) return d.likely;
  return d.likely * portable_exp(std::abs(deviations) * portable_log(end / d.likely));
}

}  // namespace

double Distribution::quantile(double p) const {
  assert(p > 0 && p < 1 && low > 0 && low <= high);
  switch (law) {
    case DistributionLaw::fixed:
      return likely;
    case DistributionLaw::uniform:
      return low + p * (high - low);
    case DistributionLaw::triangular:
      return triangular_quantile(*this, p);
    case DistributionLaw::lognormal:
      return lognormal_quantile(*this, p);
  }
  assert(false && "every law is listed above");
  return likely;
}

}  // namespace lockstep
