#include "models/site/plant.hpp"

#include <array>
#include <cmath>
#include <doctest/doctest.h>
#include <numeric>

namespace lockstep {
namespace {

UnitBank bank_of(int units, double mean_s, double repair_s, int crews = 0) {
  return {.name = "unit",
          .units = units,
          .mean_time = Seconds{mean_s},
          .repair = Seconds{repair_s},
          .crews = crews};
}

}  // namespace

TEST_CASE(
    "units down: one is up for mean / (mean + repair), and crews for all give the binomial law") {
  CHECK(availability(bank_of(1, 900, 100), 1) == doctest::Approx(0.9));
  const UnitBank five = bank_of(5, 900, 100);
  const std::vector<double> down = units_down(five);
  CHECK(std::accumulate(down.begin(), down.end(), 0.0) == doctest::Approx(1.0));
  // Two of five down: 10 x 0.1^2 x 0.9^3.
  CHECK(down[2] == doctest::Approx(10 * 0.01 * 0.729));
  // N+1: four of five are enough.
  CHECK(availability(five, 4) == doctest::Approx(std::pow(0.9, 5) + 5 * 0.1 * std::pow(0.9, 4)));
  // A and B: one of two.
  CHECK(availability(bank_of(2, 900, 100), 1) == doctest::Approx(1 - 0.1 * 0.1));
}

TEST_CASE("units down: with one crew, a machine repair queue of two solved by hand") {
  // Failures at 2/900 and 1/900, repairs at 1/100: p = (1, 2/9, 2/81), normalised.
  const std::vector<double> down = units_down(bank_of(2, 900, 100, 1));
  const double sum = 1 + 2.0 / 9 + 2.0 / 81;
  CHECK(down[0] == doctest::Approx(1 / sum));
  CHECK(down[1] == doctest::Approx(2.0 / 9 / sum));
  CHECK(down[2] == doctest::Approx(2.0 / 81 / sum));
  // Fewer crews leave more units down.
  CHECK(availability(bank_of(20, 900, 100, 1), 18) < availability(bank_of(20, 900, 100, 2), 18));
  CHECK(units_down(bank_of(3, 0, 100)) == std::vector<double>{1, 0, 0, 0});
}

TEST_CASE("units down: M/M/2 over four machines solved by hand, and k of n follows") {
  // Failures at 4, 3, 2, 1 / 900, repairs at 1, 2, 2, 2 / 100: with r = 1 / 9 the weights are
  // 1, 4 r, 4 r 3 r / 2, x 2 r / 2, x r / 2.
  const double r = 1.0 / 9;
  const std::array weights{1.0, 4 * r, 6 * r * r, 6 * r * r * r, 3 * r * r * r * r};
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  const UnitBank four = bank_of(4, 900, 100, 2);
  const std::vector<double> down = units_down(four);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    CHECK(down[i] == doctest::Approx(weights[i] / sum).epsilon(1e-12));
  }
  CHECK(availability(four, 3) == doctest::Approx((1 + 4 * r) / sum).epsilon(1e-12));
}

TEST_CASE(
    "coolant: sink and approach by load, never below the set point, hotter with fewer units") {
  const CoolingLaw law{.unit_heat = Watts{1e6},
                       .approach_kelvin = 10,
                       .set_point_celsius = 25,
                       .rated_celsius = 35,
                       .slowdown_celsius = 85};
  CHECK(coolant_celsius(law, 20, Watts{10e6}, 10) == doctest::Approx(30));
  CHECK(coolant_celsius(law, 5, Watts{10e6}, 10) == 25);
  CHECK(coolant_celsius(law, 20, Watts{10e6}, 8) == doctest::Approx(32.5));
  CHECK(std::isinf(coolant_celsius(law, 20, Watts{10e6}, 0)));
  // The whole limit at 35, half of it half way to 85, nothing there; never more than the limit.
  CHECK(power_share_at(law, 30) == 1);
  CHECK(power_share_at(law, 35) == 1);
  CHECK(power_share_at(law, 60) == doctest::Approx(0.5));
  CHECK(power_share_at(law, 90) == 0);
}

TEST_CASE("coolant: chillers keep the set point whatever is outside, while they carry the heat") {
  const CoolingLaw law{.chills = true,
                       .unit_heat = Watts{1e6},
                       .approach_kelvin = 10,
                       .set_point_celsius = 20,
                       .rated_celsius = 35,
                       .slowdown_celsius = 85};
  for (const double outside : {-20.0, 20.0, 50.0}) {
    CHECK(coolant_celsius(law, outside, Watts{10e6}, 10) == 20);
    CHECK(coolant_celsius(law, outside, Watts{10e6}, 9) == 85);  // a tenth is left in the loop
    CHECK(coolant_celsius(law, outside, Watts{1}, 0) == 85);
  }
}

TEST_CASE("rise: heat over what the units that work carry, nothing idle, infinite without a unit") {
  // Eight of ten units carry 10 MW: each a quarter more than its 1 MW, so 4 K become 5.
  CHECK(rise_kelvin(4, Watts{1e6}, Watts{10e6}, 8) == doctest::Approx(5));
  CHECK(rise_kelvin(4, Watts{1e6}, Watts{10e6}, 10) == doctest::Approx(4));
  CHECK(rise_kelvin(4, Watts{1e6}, Watts{}, 1) == 0);
  CHECK(std::isinf(rise_kelvin(4, Watts{1e6}, Watts{10e6}, 0)));
}

TEST_CASE("water: a kilowatt-hour evaporates 1.47 litres, and cycles of four let a third more go") {
  const double evaporated = 3.6e6 / 2.45e6;
  CHECK(make_up_litres(Joules{3.6e6}, 4) == doctest::Approx(evaporated * 4 / 3));
  CHECK(make_up_litres(Joules{3.6e6}, 1e9) == doctest::Approx(evaporated));
}

}  // namespace lockstep
