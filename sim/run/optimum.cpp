#include "sim/run/optimum.hpp"

#include <cmath>

#include "sim/core/random.hpp"

namespace lockstep {

Seconds young_interval(Seconds d, Seconds m) {
  return Seconds{std::sqrt(2 * d.base_units() * m.base_units())};
}

Seconds daly_interval(Seconds d, Seconds m) {
  if (d >= 2 * m) return m;
  const double x = d / (2 * m);
  return young_interval(d, m) * (1 + std::sqrt(x) / 3 + x / 9) - d;
}

double daly_time_ratio(Seconds t, Seconds d, Seconds r, Seconds m) {
  return m / t * portable_exp(r / m) * (portable_exp((t + d) / m) - 1);
}

double expected_ettr(Seconds t, Seconds write, Seconds restart, Seconds m) {
  return (1 - (restart + t / 2) / m) / (1 + write / t);
}

}  // namespace lockstep
