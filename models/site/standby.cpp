#include "models/site/standby.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

namespace lockstep {

Seconds bridge_time(Joules stored, Watts load) {
  if (load <= Watts{}) return Seconds{std::numeric_limits<double>::infinity()};
  return stored / load;
}

double enough_start(int units, int needed, double fails_to_start) {
  assert(units >= 0 && fails_to_start >= 0 && fails_to_start <= 1);
  if (needed <= 0) return 1;
  if (fails_to_start <= 0) return needed <= units ? 1 : 0;
  if (fails_to_start >= 1) return 0;
  const double n = units, started = std::log1p(-fails_to_start), failed = std::log(fails_to_start);
  double sum = 0;
  for (double i = needed; i <= n; ++i) {
    const double ways = std::lgamma(n + 1) - std::lgamma(i + 1) - std::lgamma(n - i + 1);
    sum += std::exp(ways + i * started + (n - i) * failed);
  }
  return std::min(1.0, sum);
}

double outlasts_standby(Seconds outage, Seconds bridge, const GeneratorLaw& generators,
                        double starts) {
  assert(outage > Seconds{} && starts >= 0 && starts <= 1);
  const double bridged = std::exp(-(bridge / outage));
  if (generators.start > bridge) return bridged;
  const double fuelled =
      generators.fuel > Seconds{} ? std::exp(-((bridge + generators.fuel) / outage)) : 0;
  return (1 - starts) * bridged + starts * fuelled;
}

}  // namespace lockstep
