#include "sim/site/site_availability.hpp"

#include <cmath>
#include <doctest/doctest.h>

#include "models/site/plant.hpp"
#include "sim/site/site_books.hpp"
#include "sim/site/site_clock.hpp"
#include "tests/sim/site/hand_made_site.hpp"

namespace lockstep {
namespace {

using test::at_hour;
using test::hand_made_site;

constexpr std::size_t kHoursOfSite = 24;

/// Up so much of the time.
UnitBank bank_up(const char* name, int units, double up) {
  const double repair = 3600;
  return {.name = name,
          .units = units,
          .mean_time = up < 1 ? Seconds{repair * up / (1 - up)} : Seconds{},
          .repair = Seconds{repair},
          .crews = 0};
}
PowerPart fed_part(const UnitBank& bank, double megawatts, std::vector<std::size_t> from,
                   int nodes) {
  return {
      .bank = bank, .capacity = Watts{megawatts * 1e6}, .from = std::move(from), .nodes = nodes};
}
double path_share(SitePlan& plan, std::vector<PowerPart> path) {
  plan.spec.path = std::move(path);
  return site_availability(plan, kHoursOfSite).path.value();
}

CoolingPlant tower_plant(int units, double up) {
  return {.bank = bank_up("", units, up),
          .law = {.unit_heat = Watts{1e6},
                  .approach_kelvin = 10,
                  .set_point_celsius = 20,
                  .rated_celsius = 35,
                  .slowdown_celsius = 85},
          .loop = {},
          .sink = HeatSink::dry,
          .cycles = 4};
}

}  // namespace

TEST_CASE("availability: A and B, in series, and k out of n with rows in reserve") {
  SitePlan plan = hand_made_site();  // 100 nodes, 10 MW
  const UnitBank rows = bank_up("row", 10, 1);
  const PowerPart a = fed_part(bank_up("A", 1, 0.9), 0, {}, 0);
  CHECK(path_share(plan,
                   {a, fed_part(bank_up("B", 1, 0.8), 0, {}, 0), fed_part(rows, 0, {0, 1}, 10)}) ==
        doctest::Approx(1 - 0.1 * 0.2).epsilon(1e-9));
  CHECK(path_share(plan, {a, fed_part(bank_up("B", 1, 0.8), 0, {0}, 0),
                          fed_part(rows, 0, {1}, 10)}) == doctest::Approx(0.9 * 0.8).epsilon(1e-9));
  // Ten rows that all have to be up; then one of eleven may be down.
  CHECK(path_share(plan, {fed_part(bank_up("row", 10, 0.98), 0, {}, 10)}) ==
        doctest::Approx(std::pow(0.98, 10)).epsilon(1e-9));
  plan.reserved = 10;
  CHECK(path_share(plan, {fed_part(bank_up("row", 11, 0.98), 0, {}, 10)}) ==
        doctest::Approx(std::pow(0.98, 11) + 11 * 0.02 * std::pow(0.98, 10)).epsilon(1e-9));
}

TEST_CASE("availability: capacity counts, and what stands by does not") {
  SitePlan plan = hand_made_site();
  const PowerPart rows = fed_part(bank_up("row", 1, 1), 0, {0}, 100);
  // N: three of three blocks of 4 MW. N+1: three of four. One crew makes it worse.
  CHECK(path_share(plan, {fed_part(bank_up("UPS", 3, 0.9), 4, {}, 0), rows}) ==
        doctest::Approx(std::pow(0.9, 3)).epsilon(1e-9));
  UnitBank four = bank_up("UPS", 4, 0.9);
  CHECK(path_share(plan, {fed_part(four, 4, {}, 0), rows}) ==
        doctest::Approx(availability(four, 3)).epsilon(1e-9));
  four.crews = 1;
  CHECK(path_share(plan, {fed_part(four, 4, {}, 0), rows}) ==
        doctest::Approx(availability(four, 3)).epsilon(1e-9));
  // A generator beside the line is not counted.
  PowerPart generator = fed_part(bank_up("generator", 2, 1), 10, {}, 0);
  generator.generator = GeneratorLaw{};
  CHECK(path_share(plan, {fed_part(bank_up("line", 1, 0.95), 0, {}, 0), generator,
                          fed_part(bank_up("row", 1, 1), 0, {0, 1}, 100)}) ==
        doctest::Approx(0.95).epsilon(1e-9));
  // Too many states to try them all.
  plan.spec.path.clear();
  for (int i = 0; i < 12; ++i) plan.spec.path.push_back(fed_part(bank_up("p", 8, 0.5), 0, {}, 10));
  CHECK_FALSE(site_availability(plan, kHoursOfSite).path.has_value());
  CHECK_FALSE(site_availability(plan, kHoursOfSite).all.has_value());
}

TEST_CASE("availability: cooling is k out of n of each hour, and the loop's units count too") {
  SitePlan plan = hand_made_site();
  plan.spec.cooling = tower_plant(11, 0.95);
  // 35 C with ten units at 25 C outside; at 24 C nine would be too few: 24 + 10 x 10 / 9 = 35.1.
  for (SiteHour& hour : plan.spec.hours) hour.outside_celsius = 24;
  plan.spec.hours[0].outside_celsius = 25.5;  // eleven: 34.6; ten: 35.5
  plan.spec.hours[1].outside_celsius = 27;    // too warm for all of them
  const double eleven = std::pow(0.95, 11);
  const double ten = eleven + 11 * 0.05 * std::pow(0.95, 10);
  CHECK(site_availability(plan, kHoursOfSite).cooling.value() ==
        doctest::Approx((22 * ten + eleven) / 24).epsilon(1e-9));
  CHECK(site_availability(plan, kHoursOfSite).all.value() ==
        doctest::Approx((22 * ten + eleven) / 24).epsilon(1e-9));
  CHECK_FALSE(site_availability(plan, kHoursOfSite).path.has_value());
  CHECK_FALSE(site_availability(plan, kHoursOfSite).grid.has_value());
  // Pumps, two of which carry it with 1 K, one with 2 K: at 23.5 C ten towers and two pumps, or
  // eleven and one (23.5 + 9.09 + 2 = 34.6).
  plan.spec.cooling->loop = {{bank_up("pump", 2, 0.9), Watts{5e6}, 1}};
  for (SiteHour& hour : plan.spec.hours) hour.outside_celsius = 23.5;
  CHECK(site_availability(plan, kHoursOfSite).cooling.value() ==
        doctest::Approx(eleven * 0.99 + (ten - eleven) * 0.81).epsilon(1e-9));
}

TEST_CASE(
    "availability: hours in which the grid gives enough, with a battery as long as it lasts") {
  SitePlan plan = hand_made_site();  // 12.5 MW
  for (SiteHour& hour : plan.spec.hours) hour.limit = Watts{15e6};
  for (const std::size_t h : {17UL, 18UL}) plan.spec.hours[h].limit = Watts{8.5e6};
  CHECK(site_availability(plan, kHoursOfSite).grid.value() == doctest::Approx(22.0 / 24));
  // 4 MWh carry the first of both hours and none of the second.
  plan.spec.battery = BatterySpec{.energy_mwh = 4, .power = Watts{5e6}};
  CHECK(site_availability(plan, kHoursOfSite).grid.value() == doctest::Approx(23.0 / 24));
  plan.spec.battery->energy_mwh = 8;
  CHECK(site_availability(plan, kHoursOfSite).grid.value() == 1);
  CHECK(site_availability(plan, 0).all.has_value() == false);
}

TEST_CASE("availability: a long run meets what the closed forms say") {
  SitePlan plan = hand_made_site();
  plan.spec.path = {fed_part(bank_up("UPS", 4, 0.97), 4, {}, 0),
                    fed_part(bank_up("row", 1, 1), 0, {0}, 100)};
  plan.spec.cooling = tower_plant(11, 0.97);
  for (SiteHour& hour : plan.spec.hours) hour.outside_celsius = 24;
  plan.spec.hours[3].limit = Watts{6e6};
  constexpr double kHours = 48'000;
  TrajectoryResult run;
  run.phases = {{0, RunBucket::productive}};
  run.wall = at_hour(kHours);
  const SiteBooks books = site_books(plan, run, 0);
  const SiteAvailability law = site_availability(plan, books.hours.size());
  CHECK(law.all.value() < 0.95);
  // The state of the units lasts about an hour, so that 48,000 of them have some 30,000 draws of a
  // share of a twentieth: within six standard deviations of 0.0012.
  CHECK(books.unbound_share() == doctest::Approx(law.all.value()).epsilon(0.008));
}

TEST_CASE("availability: cards that draw less than their limit stand coolant above its rating") {
  SitePlan plan = hand_made_site();
  // The job wants four fifths of what cards may draw: chips stand 85 - 0.8 x 50 = 45 C, not 35.
  plan.table = PaceTable({{.share = 1, .speed = 1, .it = Watts{10e6}},
                          {.share = 0.8, .speed = 1, .it = Watts{10e6}},
                          {.share = 0.5, .speed = 0.5, .it = Watts{6e6}}});
  plan.spec.cooling = tower_plant(11, 0.95);
  // 44.9 C with ten units (34.9 + 10), 46.0 with nine.
  for (SiteHour& hour : plan.spec.hours) hour.outside_celsius = 34.9;
  const double eleven = std::pow(0.95, 11);
  const double ten = eleven + 11 * 0.05 * std::pow(0.95, 10);
  CHECK(site_availability(plan, kHoursOfSite).cooling.value() ==
        doctest::Approx(ten).epsilon(1e-9));
  // A run there is not slowed either, and with one degree more than chips stand it is.
  plan.spec.cooling = tower_plant(10, 1);
  SiteClock fits(plan, 0);
  CHECK(fits.at(at_hour(0)).speed == doctest::Approx(1).epsilon(1e-9));
  for (SiteHour& hour : plan.spec.hours) hour.outside_celsius = 36;
  SiteClock warm(plan, 0);
  CHECK(warm.at(at_hour(0)).speed < 1);
  CHECK(site_availability(plan, kHoursOfSite).cooling.value() == 0);
}

}  // namespace lockstep
