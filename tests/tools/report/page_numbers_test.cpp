#include "tools/views/report/page_numbers.hpp"

#include <doctest/doctest.h>

using namespace lockstep;

TEST_CASE("units: the one in which the largest value is at least 1") {
  CHECK(time_unit(1).name == "s");
  CHECK(time_unit(0.999).name == "ms");
  CHECK(time_unit(0).name == "µs");
  CHECK(bytes_unit(1e9).name == "GB");
  CHECK(bytes_unit(999e6).name == "MB");
  CHECK(page_bytes(1.2e9) == "1.20\u00a0GB");
  CHECK(page_duration(12.3e-6) == "12.3\u00a0µs");
  CHECK(page_duration(3e-9) == "3.00\u00a0ns");
  CHECK(page_duration(0.99996e-6) == "1.00\u00a0µs");
  CHECK(page_with_text("12,345", "tokens/s") == "12,345\u00a0tokens/s");
  CHECK(page_percent(0.614) == "61\u00a0%");
}

TEST_CASE("units: long times are counted in a unit of which there are at least three") {
  CHECK(long_time_unit(3 * 86400).name == "days");
  CHECK(long_time_unit(3 * 86400 - 1).name == "h");
  CHECK(long_time_unit(179).name == "s");
  CHECK(long_time_unit(0).name == "s");
}

TEST_CASE("units: power, energy and money in the size that reads best") {
  CHECK(page_watts(24.3e6) == "24.3\u00a0MW");
  CHECK(page_watts(0) == "0\u00a0W");
  CHECK(page_watts(-1500) == "-1.50\u00a0kW");
  CHECK(page_energy(31.2 * 3.6e12) == "31.2\u00a0GWh");
  CHECK(page_energy(3.5e6) == "3,500\u00a0kJ");
  CHECK(page_usd(42.5e6) == "42.5\u00a0M\u00a0USD");
  CHECK(page_usd(2.5) == "2.50\u00a0USD");
  CHECK(page_percent(0.12345, 2) == "12.35\u00a0%");
  CHECK(four_digits(1.23456) == 1.235);
  CHECK(rounded_percent(0.12345) == 12.3);
  CHECK(fine_percent(0.12345) == 12.35);
}

TEST_CASE("settings: in the unit that somebody would use, without zeros that say nothing") {
  CHECK(page_setting(1800) == "30\u00a0min");
  CHECK(page_setting(3600) == "1\u00a0h");
  CHECK(page_setting(7199) == "2\u00a0h");
  CHECK(page_setting(5400) == "1.5\u00a0h");
  CHECK(page_setting(48.44) == "48.4\u00a0s");
  CHECK(page_setting(86'400) == "24\u00a0h");
  CHECK(page_setting(54.0 * 86'400) == "54\u00a0days");
  CHECK(page_setting(0.1) == "100\u00a0ms");
  CHECK(page_setting(100) == "1.67\u00a0min");
}
