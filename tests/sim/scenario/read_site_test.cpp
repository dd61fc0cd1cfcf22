#include <doctest/doctest.h>
#include <fmt/format.h>
#include <string>

#include "models/base/input_error.hpp"
#include "sim/scenario/run_spec.hpp"
#include "tests/support/presets.hpp"
#include "tests/support/temporary_folder.hpp"

namespace lockstep {
namespace {

using test::presets;

const std::string kSiteFolder = LOCKSTEP_SOURCE_DIR "/scenarios/site/";

SiteSpec site_of(const std::string& members) {
  const std::string run = fmt::format(
      R"({{"duration": "1 d", "reliability": {{"modes": []}}, "site": {{{}}}}})", members);
  return *read_run_spec(JsonCursor::parse(kSiteFolder + "t.json", run), presets()).site;
}
std::string problem_of_site(const std::string& members) {
  try {
    (void)site_of(members);
  } catch (const InputError& error) {
    return std::string(error.what()).substr(kSiteFolder.size());
  }
  return "";
}

}  // namespace

TEST_CASE("site: without a file there is a year of hours from its start on") {
  const SiteSpec spec = site_of(R"("start": "2024-02-28T22:00")");
  CHECK(spec.hours.size() == 8760);
  CHECK(spec.hours[0].hour == 22);
  CHECK(spec.hours[2].day_of_year == 60);  // the 29th of a leap year
  CHECK_FALSE(spec.hours[0].outside_celsius.has_value());
}

TEST_CASE("site: a file's hours begin where the run does, and curtailments go by the local clock") {
  const SiteSpec spec = site_of(R"("hours": "example-hours.csv", "start": "2026-03-28T16:00",
      "limit": "30 MW", "curtailments": [{"from_hour": 17, "hours": 2, "limit": "12 MW"},
                                         {"from_hour": 18, "hours": 1, "limit": "20 MW"}])");
  CHECK(spec.hours_given == 60 * 24);
  REQUIRE(spec.hours.size() == 8760);
  CHECK(spec.priced);
  CHECK(spec.hours[0].limit == Watts{30e6});
  for (const std::size_t h : {1UL, 2UL}) CHECK(spec.hours[h].limit == Watts{12e6});
  CHECK(spec.hours[3].limit == Watts{30e6});
  // That night has 23 hours: the next evening comes an hour sooner.
  CHECK(spec.hours[24].hour == 17);
  CHECK(spec.hours[24].limit == Watts{12e6});
  CHECK(spec.hours[26].limit == Watts{30e6});
}

TEST_CASE(
    "site: hours of a file that is repeated have the calendar of the time at which they are met") {
  // Of 60 days from 15 March: those before the start follow those from it on, then all of them.
  const SiteSpec spec = site_of(R"("hours": "example-hours.csv", "start": "2026-05-01T00:00",
      "curtailments": [{"from_hour": 0, "hours": 24, "limit": "1 MW", "first_month": 7,
                        "last_month": 7}], "limit": "2 MW")");
  const SiteSpec whole = site_of(R"("hours": "example-hours.csv")");
  int july = 0;
  for (std::size_t h = 0; h < spec.hours.size(); ++h) {
    const SiteHour& hour = spec.hours[h];
    july += hour.limit == Watts{1e6} ? 1 : 0;
    CHECK((hour.limit == Watts{1e6}) == (hour.month == 7));
    if (h == 0) continue;
    const int before = spec.hours[h - 1].hour;
    CHECK(hour.hour == (before + 1) % 24);
  }
  CHECK(july == 31 * 24);
  // 13 days are left of the file: then its first hour comes, in the middle of May.
  CHECK(spec.hours[13 * 24 + 1].usd_per_kwh == whole.hours[1].usd_per_kwh);
  CHECK(spec.hours[13 * 24 + 1].month == 5);
  CHECK(spec.hours[13 * 24 + 1].day_of_year == 31 + 28 + 31 + 30 + 14);
}

TEST_CASE("site: a curtailment over midnight and over New Year has its hours and months") {
  const SiteSpec spec = site_of(R"("start": "2026-01-01T00:00", "curtailments": [
      {"from_hour": 23, "hours": 2, "limit": "1 MW", "first_month": 12, "last_month": 1}])");
  int curtailed = 0;
  for (const SiteHour& hour : spec.hours) curtailed += hour.limit == Watts{1e6} ? 1 : 0;
  CHECK(curtailed == 62 * 2);
}

TEST_CASE("site: drawn weather has its mean, its seasons and its waves, and the seed decides it") {
  const std::string members =
      R"("weather": {"mean_celsius": 12, "yearly_kelvin": 9, "daily_kelvin": 5, "noise_kelvin": 0,
         "waves": [{"start": "2026-07-10T00:00", "days": 2, "kelvin": 8}]})";
  const SiteSpec spec = site_of(members);
  double sum = 0;
  for (const SiteHour& hour : spec.hours) sum += *hour.outside_celsius;
  CHECK((sum - 48 * 8) / 8760 == doctest::Approx(12).epsilon(0.002));
  // The warmest afternoon, on day 200: mean, season and day.
  CHECK(*spec.hours[199 * 24 + 15].outside_celsius == doctest::Approx(26));
  const std::size_t wave = 190 * 24;
  CHECK(*spec.hours[wave].outside_celsius - *spec.hours[wave - 24].outside_celsius > 7.5);
  const auto first_of = [](int seed) {
    return *site_of(fmt::format(R"("weather": {{"mean_celsius": 12, "seed": {}}})", seed))
                .hours[7]
                .outside_celsius;
  };
  CHECK(first_of(1) == first_of(1));
  CHECK(first_of(1) != first_of(2));
}

TEST_CASE("site: bad input is one line") {
  CHECK(problem_of_site(R"("start": "July")") ==
        "t.json#/site/start: found \"July\"; allowed: a time like 2026-07-01T00:00");
  CHECK(problem_of_site(R"("hours": "example-hours.csv", "start": "2020-01-01T00:00")") ==
        "t.json#/site/start: found \"2020-01-01T00:00\"; allowed: a time that the file of hours "
        "has, 2026-03-15T00:00+01:00 to 2026-05-14T00:00+02:00");
  CHECK(problem_of_site(R"("hours": "example-hours.csv", "weather": {"mean_celsius": 3})") ==
        "t.json#/site/weather: found an object; allowed: nothing, as the file of hours has "
        "outside_celsius");
  CHECK(problem_of_site(R"("solar": "1 MW")") ==
        "t.json#/site/solar: found \"1 MW\"; allowed: 0, hours with a column \"solar_share\", or "
        "\"latitude\" beside it");
  CHECK(problem_of_site(R"("wind": "1 MW")") ==
        "t.json#/site/wind: found \"1 MW\"; allowed: 0, or hours with a column \"wind_share\"");
  CHECK(problem_of_site(R"("path": [{"name": "a", "nodes": 1, "from": ["b"]}])") ==
        "t.json#/site/path/0/from/0: found \"b\"; allowed: nothing: there are none");
  CHECK(problem_of_site(R"("path": [{"name": "a", "from": ["b"]},
                                     {"name": "b", "nodes": 1, "from": ["a"]}])") ==
        "t.json#/site/path/0/from/0: found \"b\"; allowed: nothing, as the first part is fed from "
        "outside; power comes from parts that are listed before");
  CHECK(problem_of_site(R"("path": [{"name": "a"}, {"name": "b", "nodes": 1, "from": ["b"]}])") ==
        "t.json#/site/path/1/from/0: found \"b\"; allowed: parts that are listed before, so that "
        "no power goes round: a");
  CHECK(problem_of_site(
            R"("path": [{"name": "a"}, {"name": "b", "nodes": 1, "from": ["a", "a"]}])") ==
        "t.json#/site/path/1/from/1: found \"a\"; allowed: each part once");
  CHECK(problem_of_site(R"("path": [{"name": "a", "nodes": 1}, {"name": "b", "from": ["a"]}])") ==
        "t.json#/site/path/1: found an object; allowed: a part that feeds nodes, or that a later "
        "one has in \"from\"");
  CHECK(problem_of_site(R"("cooling": {"units": 3, "unit_heat": "1 MW", "loop": [
            {"name": "pump", "units": 2, "unit_heat": "2 MW", "approach_kelvin": 1},
            {"name": "pump", "units": 2, "unit_heat": "2 MW", "approach_kelvin": 1}]})") ==
        "t.json#/site/cooling/loop/1/name: found \"pump\"; allowed: a name that no other units of "
        "the cooling have");
  CHECK(problem_of_site(R"("path": [{"name": "a"}])") ==
        "t.json#/site/path: found an array; allowed: parts, of which one has nodes");
  CHECK(
      problem_of_site(R"("path": [{"name": "a", "nodes": 1, "bridge": "5 min"}])") ==
      "t.json#/site/path/0/bridge: found \"5 min\"; allowed: none without \"capacity\", which its "
      "batteries carry so long");
  CHECK(problem_of_site(R"("path": [{"name": "a"}, {"name": "b", "nodes": 1, "from": ["a"], )"
                        R"("generator": {}}])") ==
        "t.json#/site/path/1/from: found an array; allowed: nothing, as a generator is fed by no "
        "other part");
  CHECK(
      problem_of_site(R"("path": [{"name": "a", "nodes": 1, "generator": {"start": "20 s"}}])") ==
      "t.json#/site/path: found an array; allowed: parts, of which one is fed from outside and is "
      "no generator");
  CHECK(problem_of_site(R"("cooling": {"units": 3, "unit_heat": "1 MW", "rated_celsius": 60,
                           "slowdown_celsius": 55})") ==
        "t.json#/site/cooling/rated_celsius: found 60; allowed: less than slowdown_celsius");
  const auto battery = [](double charge, double discharge) {
    return problem_of_site(fmt::format(
        R"("battery": {{"energy_mwh": 1, "power": "1 MW", "charge_below_usd_per_kwh": {},
            "discharge_above_usd_per_kwh": {}}})",
        charge, discharge));
  };
  CHECK(battery(0.2, 0.05) ==
        "t.json#/site/battery/charge_below_usd_per_kwh: found 0.2; allowed: at most 0.05 "
        "(discharge_above_usd_per_kwh)");
  CHECK(battery(0.05, 0.05).empty());
}

TEST_CASE("site: a mistake in the file of hours names the key, the row and its line") {
  const test::TemporaryFolder folder;
  const auto problem = [&](const std::string& hours) {
    const std::string csv = folder.write("h.csv", hours);
    std::string line = problem_of_site(R"("hours": ")" + csv + R"(")");
    const std::size_t at = line.find(csv);
    return at == std::string::npos ? line : line.replace(at, csv.size(), "h.csv");
  };
  CHECK(problem("time,limit_mw\n\n2026-01-01T00:00,1\n2026-01-01T01:00\n") ==
        "t.json#/site/hours: found in h.csv, row 2 (line 4): 1 cell; allowed: 2, as the heading "
        "has");
  CHECK(problem("time,limit_mw\r\n2026-01-01T00:00,\"\"\r\n") ==
        "t.json#/site/hours: found in h.csv, row 1 (line 2): limit_mw \"\"; allowed: a number from "
        "0 to 1,000,000");
}

TEST_CASE("site: what plants cost is given by energy, power and heat, and needs a capacity") {
  const SiteSpec site = site_of(
      R"("battery": {"energy_mwh": 10, "power": "8 MW", "usd_per_kwh": 200, "usd_per_kw": 100},
         "cooling": {"units": 5, "unit_heat": "4 MW", "usd_per_kw": 150},
         "path": [{"name": "line", "capacity": "12 MW", "nodes": 1, "usd_per_kw": 50}])");
  CHECK(site.battery->usd_per_kwh == 200);
  CHECK(site.battery->usd_per_kw == 100);
  CHECK(site.cooling->usd_per_kw == 150);
  CHECK(site.path[0].usd_per_kw == 50);
  CHECK(problem_of_site(R"("path": [{"name": "a", "nodes": 1, "usd_per_kw": 50}])") ==
        "t.json#/site/path/0/usd_per_kw: found 50; allowed: none without \"capacity\", whose price "
        "it is");
}

}  // namespace lockstep
