#include "models/site/finance.hpp"

#include <cmath>
#include <doctest/doctest.h>

namespace lockstep {

TEST_CASE("lease: payments and what is left at the end pay the price back with interest") {
  constexpr double kRate = 0.01;
  const double payment = lease_payment(1000, 300, kRate, 36);
  double owed = 1000;
  for (int month = 0; month < 36; ++month) owed = owed * (1 + kRate) - payment;
  CHECK(owed == doctest::Approx(300));
  CHECK(lease_payment(1000, 1000, kRate, 36) == doctest::Approx(10));  // interest alone
  CHECK(lease_payment(1000, 0, kRate, 36) == annuity_payment(1000, kRate, 36));
  CHECK(lease_payment(1000, 400, 0, 12) == 50);
}

TEST_CASE("annuity: payments bring a loan to nothing, and without interest they are equal parts") {
  constexpr double kRate = 0.01;
  const double payment = annuity_payment(1000, kRate, 12);
  double balance = 1000;
  for (int month = 0; month < 12; ++month) balance = balance * (1 + kRate) - payment;
  CHECK(balance == doctest::Approx(0).epsilon(1e-9));
  // The textbook case: 100,000 over 30 years at 6 % a year, monthly: 599.55.
  CHECK(annuity_payment(100'000, 0.06 / 12, 360) == doctest::Approx(599.55).epsilon(1e-5));
  CHECK(annuity_payment(1000, 0, 8) == 125);
}

TEST_CASE("rates and values: twelve months make a year, and a value falls by its share each year") {
  CHECK(std::pow(1 + period_rate(0.08, 12), 12) == doctest::Approx(1.08));
  CHECK(period_rate(0, 12) == 0);
  CHECK(declined(1000, 0.35, 0) == 1000);
  CHECK(declined(1000, 0.35, 2) == doctest::Approx(1000 * 0.65 * 0.65));
  CHECK(declined(1000, 1, 1) == 0);
}

}  // namespace lockstep
