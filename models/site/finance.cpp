#include "models/site/finance.hpp"

#include <cassert>
#include <cmath>

namespace lockstep {

double annuity_payment(double principal, double rate, double periods) {
  assert(periods > 0);
  if (rate == 0) return principal / periods;
  return principal * rate / (1 - std::pow(1 + rate, -periods));
}

double lease_payment(double principal, double residual, double rate, double periods) {
  return annuity_payment(principal - residual * std::pow(1 + rate, -periods), rate, periods);
}

double period_rate(double yearly, double periods) { return std::pow(1 + yearly, 1 / periods) - 1; }

double declined(double price, double share, double years) {
  return price * std::pow(1 - share, years);
}

}  // namespace lockstep
