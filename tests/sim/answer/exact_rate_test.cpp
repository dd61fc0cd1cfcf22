#include "sim/answer/exact_rate.hpp"

#include <doctest/doctest.h>
#include <variant>

#include "models/base/quantity.hpp"

using namespace lockstep;

TEST_CASE("a rate for --set is written in the unit that reads best, and exactly") {
  CHECK(exact_rate(100e9) == "800 Gb/s");
  CHECK(exact_rate(12'345'678'901.0) == "12345678901 B/s");
  for (const double rate : {100e9, 12'345'678'901.0, 1.0, 96.5e9}) {
    const auto read = parse_quantity(exact_rate(rate), Dimension::data_rate);
    REQUIRE(std::holds_alternative<double>(read));
    CHECK(std::get<double>(read) == rate);
  }
}
