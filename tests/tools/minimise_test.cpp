#include "sim/measured/minimise.hpp"

#include <cmath>
#include <doctest/doctest.h>

namespace lockstep {

TEST_CASE("minimise: finds the bottom of Rosenbrock's curved valley") {
  const auto valley = [](const std::vector<double>& x) {
    return 100 * std::pow(x[1] - x[0] * x[0], 2) + std::pow(1 - x[0], 2);
  };
  const std::vector<double> found = minimise(valley, {-1.2, 1}, 0.5);
  CHECK(found[0] == doctest::Approx(1).epsilon(1e-4));
  CHECK(found[1] == doctest::Approx(1).epsilon(1e-4));
}

TEST_CASE("minimise: a kink, where there is no derivative, is no obstacle") {
  const auto kink = [](const std::vector<double>& x) {
    return std::abs(x[0] - 3) + 2 * std::abs(x[1] + 1) + std::abs(x[2]);
  };
  const std::vector<double> found = minimise(kink, {0, 0, 1}, 1);
  CHECK(std::abs(found[0] - 3) < 1e-3);
  CHECK(std::abs(found[1] + 1) < 1e-3);
  CHECK(std::abs(found[2]) < 1e-3);
}

}  // namespace lockstep
