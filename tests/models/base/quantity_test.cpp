#include "models/base/quantity.hpp"

#include <array>
#include <doctest/doctest.h>
#include <string>
#include <string_view>
#include <variant>

#include "tests/support/near.hpp"

namespace lockstep {
namespace {

double value(std::string_view text, Dimension dimension) {
  const auto parsed = parse_quantity(text, dimension);
  REQUIRE(std::holds_alternative<double>(parsed));
  return std::get<double>(parsed);
}

QuantityMistake mistake(std::string_view text, Dimension dimension) {
  const auto parsed = parse_quantity(text, dimension);
  REQUIRE(std::holds_alternative<QuantityMistake>(parsed));
  return std::get<QuantityMistake>(parsed);
}

}  // namespace

TEST_CASE("parse_quantity: what people write becomes base units") {
  CHECK(value("400 Gb/s", Dimension::data_rate) == 50e9);
  CHECK(value("400 GB/s", Dimension::data_rate) == 400e9);
  CHECK(value("80 GiB", Dimension::data) == 85899345920.0);
  CHECK(value("15 min", Dimension::time) == 900);
  CHECK(value("2.5us", Dimension::time) == test::near(2.5e-6));
  CHECK(value("  2.5\t us ", Dimension::time) == test::near(2.5e-6));
  CHECK(value("+1e3 ms", Dimension::time) == 1);
  CHECK(value("989.4 TFLOP/s", Dimension::flops_rate) == test::near(989.4e12));
  CHECK(value("54.0 days", Dimension::time) == 54 * 86400);
  CHECK(value("1 day", Dimension::time) == 86400);
  CHECK(value("2 weeks", Dimension::time) == 14 * 86400);
  CHECK(value("6 months", Dimension::time) == test::near(182.625 * 86400));  // half of 365.25 days
  CHECK(value("1 month", Dimension::time) == test::near(30.4375 * 86400));
  CHECK(value("1.5 hours", Dimension::time) == 5400);
  CHECK(value("90minutes", Dimension::time) == 5400);
  CHECK(value("700 W", Dimension::power) == 700);
  CHECK(value("15.6 T tokens", Dimension::count) == test::near(15.6e12));
  CHECK(value("15.6  T  tokens", Dimension::count) == test::near(15.6e12));
  CHECK(value("300B", Dimension::count) == 300e9);
  CHECK(value("15.6e12", Dimension::count) == 15.6e12);
  CHECK(value("6 %", Dimension::share) == test::near(0.06));
  CHECK(value("0.06", Dimension::share) == 0.06);
  CHECK(value("-3 s", Dimension::time) == -3);  // the caller checks ranges
}

TEST_CASE(
    "parse_quantity: a unit of another dimension, in wrong letters, or missing is a mistake") {
  CHECK(mistake("400 gb/s", Dimension::data_rate).nearest == "Gb/s");
  CHECK(mistake("80 GiBs", Dimension::data).nearest == "GiB");
  CHECK(mistake("80 GiB", Dimension::time).allowed ==
        "a number with a unit of time: s, ms, us, ns, min, h, d, weeks, months");
  CHECK(mistake("12", Dimension::time).nearest.empty());
  CHECK(mistake("3 days", Dimension::data).nearest.empty());
  CHECK(mistake("5 %", Dimension::count).allowed ==
        "a number or a number with a unit of count: tokens, k tokens, M tokens, B tokens, "
        "T tokens, k, M, B, T");
}

TEST_CASE("parse_quantity: what is no number is a mistake, never a value") {
  for (const std::string_view text : {"", " ", "s", "us 2", "nan s", "inf s", "-inf s", "1e999 s",
                                      "1,5 s", "0x10 s", "1 s s", "--1 s", "++1 s", "1e308 TB/s"}) {
    CAPTURE(text);
    CHECK(std::holds_alternative<QuantityMistake>(parse_quantity(text, Dimension::time)));
    CHECK(std::holds_alternative<QuantityMistake>(parse_quantity(text, Dimension::data_rate)));
  }
}

TEST_CASE("units: every one is read as written, once per dimension") {
  for (const Unit& unit : units()) {
    CAPTURE(unit.symbol);
    CHECK(value("3 " + std::string(unit.symbol), unit.dimension) == 3 * unit.factor);
    CHECK(value("3" + std::string(unit.symbol), unit.dimension) == 3 * unit.factor);
    int same = 0;
    for (const Unit& other : units()) {
      same += other.dimension == unit.dimension && other.symbol == unit.symbol ? 1 : 0;
    }
    CHECK(same == 1);
  }
}

TEST_CASE("format_quantity: short, and read back to the same value") {
  CHECK(format_quantity(50e9, Dimension::data_rate) == "50 GB/s");
  CHECK(format_quantity(85899345920.0, Dimension::data) == "80 GiB");
  CHECK(format_quantity(2.5e-6, Dimension::time) == "2.5 us");
  CHECK(format_quantity(0, Dimension::time) == "0 s");
  CHECK(format_quantity(-1, Dimension::time) == "-1 s");
  for (const double seconds : {1e-12, 3.5e-7, 0.25, 44.4, 5000.0, 1e9}) {
    CAPTURE(seconds);
    CHECK(value(format_quantity(seconds, Dimension::time), Dimension::time) ==
          test::near(seconds).epsilon(1e-5));
  }
}

}  // namespace lockstep
