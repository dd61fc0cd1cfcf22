#include "sim/scenario/hourly_file.hpp"

#include <doctest/doctest.h>
#include <string>

#include "models/base/input_error.hpp"

namespace lockstep {
namespace {

std::string problem_of_hours(const std::string& text) {
  try {
    (void)read_hourly_file("hours.csv", text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("hourly file: prices below zero are prices, and a price per MWh is one per kWh") {
  const HourlyFile file = read_hourly_file("hours.csv",
                                           "time,usd_per_mwh,outside_celsius\n"
                                           "2026-02-28T23:00,-42.5,3\n"
                                           "2026-03-01T00:00,80,2.5\n");
  REQUIRE(file.hours.size() == 2);
  CHECK(file.hours[0].usd_per_kwh == doctest::Approx(-0.0425));
  CHECK(file.hours[1].usd_per_kwh == doctest::Approx(0.08));
  CHECK(file.hours[0].month == 2);
  CHECK(file.hours[1].month == 3);
  CHECK(file.hours[1].day_of_year == 60);
  CHECK(file.hours[1].hour == 0);
  CHECK(file.hours[1].outside_celsius == 2.5);
  CHECK(file.has.tariff);
  CHECK_FALSE(file.has.carbon);
}

TEST_CASE("hourly file: a byte order mark, as spreadsheets write it, is not of the first name") {
  const HourlyFile file = read_hourly_file("hours.csv",
                                           "\xef\xbb\xbftime,limit_mw\r\n"
                                           "2026-02-28T23:00,4\r\n");
  REQUIRE(file.hours.size() == 1);
  CHECK(file.hours[0].limit == Watts{4e6});
}

TEST_CASE("hourly file: with offsets the day on which clocks go forward has 23 hours, back 25") {
  const HourlyFile spring = read_hourly_file("hours.csv",
                                             "time,limit_mw\n"
                                             "2026-03-29T01:00+01:00,1\n"
                                             "2026-03-29T03:00+02:00,2\n");
  CHECK(spring.hours[1].hour == 3);
  const HourlyFile autumn = read_hourly_file("hours.csv",
                                             "time,limit_mw\n"
                                             "2026-10-25T02:00+02:00,1\n"
                                             "2026-10-25T02:00+01:00,2\n"
                                             "2026-10-25T03:00+01:00,3\n");
  CHECK(autumn.hours.size() == 3);
  CHECK(autumn.hours[1].limit == Watts{2e6});
}

TEST_CASE("hourly file: a gap, a time twice and clocks that change without offsets are one line") {
  CHECK(problem_of_hours("time,limit_mw\n2026-03-29T01:00,1\n2026-03-29T03:00,2\n") ==
        "hours.csv, row 2 (line 3): found time 2026-03-29T03:00 after 2026-03-29T01:00; allowed: "
        "2026-03-29T02:00, an hour later; where clocks change, times with their offset from UTC");
  CHECK(problem_of_hours("time,limit_mw\n2026-10-25T02:00,1\n2026-10-25T02:00,2\n") ==
        "hours.csv, row 2 (line 3): found time 2026-10-25T02:00 after 2026-10-25T02:00; allowed: "
        "2026-10-25T03:00, an hour later; where clocks change, times with their offset from UTC");
  CHECK(problem_of_hours("time,limit_mw\n2026-10-25T02:00Z,1\n2026-10-25T03:00,2\n") ==
        "hours.csv, row 2 (line 3): found time 2026-10-25T03:00 after 2026-10-25T02:00+00:00; "
        "allowed: an "
        "offset from UTC in every row, or in none");
  CHECK(
      problem_of_hours("time,limit_mw\n2026-10-25T02:00Z,1\n2026-10-25T04:00Z,2\n") ==
      "hours.csv, row 2 (line 3): found time 2026-10-25T04:00+00:00 after 2026-10-25T02:00+00:00; "
      "allowed: 2026-10-25T03:00+00:00, an hour later");
}

TEST_CASE("hourly file: bad cells, columns and times name their place and what is allowed") {
  CHECK(problem_of_hours("time,usd_per_kwh\n2026-01-01T00:00,\n") ==
        "hours.csv, row 1 (line 2): found usd_per_kwh \"\"; allowed: a number from -1000 to 1000");
  CHECK(problem_of_hours("time,usd_per_kw\n2026-01-01T00:00,1\n") ==
        "hours.csv: found column \"usd_per_kw\"; allowed: time, outside_celsius, "
        "humidity_percent, usd_per_kwh, usd_per_mwh, grams_per_kwh, limit_mw, solar_share, "
        "wind_share. Did you mean \"usd_per_kwh\"?");
  CHECK(problem_of_hours("time,usd_per_kwh,usd_per_mwh\n2026-01-01T00:00,1,1\n") ==
        "hours.csv: found \"usd_per_mwh\" beside another of the same; allowed: one column of each "
        "kind");
  CHECK(problem_of_hours("time,limit_mw\n2026-02-30T00:00,1\n") ==
        "hours.csv, row 1 (line 2): found time \"2026-02-30T00:00\"; allowed: a time like "
        "2026-03-29T01:00, or 2026-03-29T01:00+01:00 where clocks change");
  CHECK(problem_of_hours("time,limit_mw\n") ==
        "hours.csv: found no hour; allowed: a row for each hour");
}

TEST_CASE("civil time: what it takes, and what it does not") {
  for (const char* good : {"2026-01-01T00:00", "2026-01-01 00:00", "2026-01-01T00:00:00",
                           "2026-01-01T00:00Z", "2026-12-31T23:00-09:30"}) {
    CAPTURE(good);
    CHECK(parse_civil_time(good));
  }
  for (const char* bad : {"", "2026-01-01", "2026-13-01T00:00", "2026-01-01T24:00",
                          "2026-01-01T00:60", "2026-01-01T00:00:30", "2026-01-01T00:00+1",
                          "26-01-01T00:00", "2026-01-01T00:00 ", "-026-01-01T00:00"}) {
    CAPTURE(bad);
    CHECK_FALSE(parse_civil_time(bad));
  }
}

}  // namespace lockstep
