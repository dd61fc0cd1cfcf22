#include "models/kernels/order_statistics.hpp"

#include <array>
#include <cmath>
#include <doctest/doctest.h>
#include <numbers>

namespace lockstep {
namespace {

struct ExactMaximum {
  double n;
  double value;
};
// Closed forms up to five: David and Nagaraja 2003, Order Statistics, 3rd ed., exercise 3.2.2.
const double kRootPi = std::sqrt(std::numbers::pi);
const std::array kClosedForms{
    ExactMaximum{1, 0},
    ExactMaximum{2, 1 / kRootPi},
    ExactMaximum{3, 3 / (2 * kRootPi)},
    ExactMaximum{4, 3 / kRootPi * (0.5 + std::asin(1.0 / 3) / std::numbers::pi)},
    ExactMaximum{5, 5 / kRootPi * (0.25 + 1.5 * std::asin(1.0 / 3) / std::numbers::pi)},
};
// Harter 1961, Biometrika 48, 151-165, table 1 (five decimals).
constexpr std::array kTable{ExactMaximum{10, 1.53875}, ExactMaximum{20, 1.86748},
                            ExactMaximum{50, 2.24907}, ExactMaximum{100, 2.50759}};

}  // namespace

TEST_CASE("expected_maximum_of_normals: closed forms of one to five") {
  for (const ExactMaximum& row : kClosedForms) {
    CAPTURE(row.n);
    CHECK(std::abs(expected_maximum_of_normals(row.n) - row.value) < 1e-9);
  }
}

TEST_CASE("expected_maximum_of_normals: Harter's table to all its decimals") {
  for (const ExactMaximum& row : kTable) {
    CAPTURE(row.n);
    CHECK(std::abs(expected_maximum_of_normals(row.n) - row.value) < 0.5e-5);
  }
}

TEST_CASE("expected_maximum_of_normals: grows with n and nears sqrt(2 ln n) from below") {
  double last = -1;
  for (double n = 1; n < 1e7; n *= 4) {
    CAPTURE(n);
    const double value = expected_maximum_of_normals(n);
    CHECK(value > last);
    CHECK(value < std::sqrt(2 * std::log(n)) + 1e-9);
    last = value;
  }
  CHECK(last > 0.85 * std::sqrt(2 * std::log(4194304.0)));
}

}  // namespace lockstep
