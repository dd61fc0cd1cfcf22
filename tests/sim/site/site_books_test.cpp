#include "sim/site/site_books.hpp"

#include <doctest/doctest.h>

#include "models/site/plant.hpp"
#include "tests/sim/site/hand_made_site.hpp"

namespace lockstep {
namespace {

using test::at_hour;
using test::hand_made_site;

/// So many hours of nothing but one phase after the other.
TrajectoryResult run_of_phases(std::vector<RunPhase> phases, RunTime wall) {
  TrajectoryResult run;
  run.phases = std::move(phases);
  run.wall = wall;
  return run;
}
TrajectoryResult training_for(double hours) {
  return run_of_phases({{0, RunBucket::productive}}, at_hour(hours));
}

double mwh(Joules energy) { return energy.base_units() / 3.6e9; }

void check_balance(const SiteAmounts& of) {
  const Joules in = of.imported + of.renewable + of.battery_out;
  const Joules out = of.facility + of.battery_in + of.given_away;
  CHECK(in / out == doctest::Approx(1.0).epsilon(1e-12));
}

}  // namespace

TEST_CASE("books: phases at their levels, by the hour, and the last hour as long as it is") {
  const SitePlan plan = hand_made_site();
  const TrajectoryResult run = run_of_phases({{0, RunBucket::productive},
                                              {at_hour(1.25), RunBucket::restart},
                                              {at_hour(1.5), RunBucket::diagnosis},
                                              {at_hour(2), RunBucket::productive}},
                                             at_hour(2.5));
  const SiteBooks books = site_books(plan, run, 0);
  REQUIRE(books.hours.size() == 3);
  CHECK(mwh(books.hours[0].of.machines) == doctest::Approx(10));
  CHECK(mwh(books.hours[1].of.machines) == doctest::Approx(0.25 * 10 + 0.25 * 2 + 0.5 * 1));
  CHECK(mwh(books.hours[2].of.machines) == doctest::Approx(5));
  CHECK(books.hours[2].length.base_units() == doctest::Approx(1800));
  CHECK(mwh(books.sum.machines) == doctest::Approx(18.5).epsilon(1e-12));
  CHECK(mwh(books.sum.facility) == doctest::Approx(1.25 * 18.5).epsilon(1e-12));
  CHECK(books.sum.energy_usd == doctest::Approx(1.25 * 18.5 * 100).epsilon(1e-12));
  CHECK(books.sum.grams.value() == doctest::Approx(1.25 * 18.5 * 400e3).epsilon(1e-12));
  CHECK(books.power.drawn.base_units() == doctest::Approx(12.5e6));
}

TEST_CASE("books: energy balances in every hour and month and in sum, and money adds up") {
  SitePlan plan = hand_made_site();
  plan.spec.priced = plan.spec.counted_carbon = true;
  plan.spec.solar = Watts{30e6};
  plan.spec.export_usd_per_kwh = 0.03;
  plan.spec.demand_usd_per_kw_month = 10;
  plan.spec.battery = BatterySpec{.energy_mwh = 8, .power = Watts{3e6}, .efficiency = 0.9};
  for (std::size_t h = 0; h < plan.spec.hours.size(); ++h) {
    SiteHour& hour = plan.spec.hours[h];
    hour.solar = h >= 8 && h < 16 ? 0.6 : 0;
    hour.limit = Watts{h == 18 || h == 19 ? 8e6 : 20e6};
    hour.usd_per_kwh = h == 12 ? -0.05 : 0.1;
    hour.grams_per_kwh = 10.0 * static_cast<double>(h);
    hour.month = h < 12 ? 1 : 2;
  }
  const SiteBooks books = site_books(plan, training_for(24), 0);
  SiteAmounts sum, by_month;
  for (const SiteHourBook& hour : books.hours) {
    check_balance(hour.of);
    sum += hour.of;
  }
  for (const SiteMonthBook& month : books.months) {
    check_balance(month.of);
    by_month += month.of;
  }
  check_balance(books.sum);
  REQUIRE(books.months.size() == 2);
  for (const auto member : {&SiteAmounts::machines, &SiteAmounts::facility, &SiteAmounts::imported,
                            &SiteAmounts::battery_in, &SiteAmounts::battery_out}) {
    CHECK((sum.*member) / (books.sum.*member) == doctest::Approx(1.0).epsilon(1e-9));
    CHECK((by_month.*member) / (books.sum.*member) == doctest::Approx(1.0).epsilon(1e-9));
  }
  CHECK(by_month.energy_usd == doctest::Approx(books.sum.energy_usd).epsilon(1e-9));
  // At noon 18 MW of sun meet 12.5 MW: what is given away earns, the tariff below zero costs
  // nothing, as nothing is bought. The battery is full from the start.
  const SiteHourBook& noon = books.hours[12];
  CHECK(mwh(noon.of.given_away) == doctest::Approx(5.5));
  CHECK(noon.of.energy_usd == doctest::Approx(-5500 * 0.03));
  // Two hours of 4.5 MW too little: the battery gives its 3 MW twice.
  CHECK(mwh(books.hours[18].of.battery_out) == doctest::Approx(3));
  CHECK(mwh(books.hours[19].of.battery_out) == doctest::Approx(3));
  CHECK(books.sum.short_of == Joules{});
  // Each month pays for its highest hour.
  double demand = 0;
  for (const SiteMonthBook& month : books.months) demand += month.peak.base_units() / 1e3 * 10;
  CHECK(books.demand_usd == doctest::Approx(demand).epsilon(1e-12));
  CHECK(books.months[0].peak.base_units() == doctest::Approx(12.5e6));
}

TEST_CASE("books: carbon is unknown where nobody says the grid's intensity") {
  SitePlan plan = hand_made_site();
  plan.grams_per_kwh.reset();
  const SiteBooks books = site_books(plan, training_for(24), 0);
  CHECK_FALSE(books.sum.grams);
  CHECK_FALSE(books.months.front().of.grams);
  CHECK_FALSE(usage_of(books, Seconds{1}, 1, Flops{}).grams);
  plan.spec.counted_carbon = true;  // by the hour counts as said
  CHECK(site_books(plan, training_for(24), 0).sum.grams == 0.0);
}

TEST_CASE("books: a price below zero earns for what is bought") {
  SitePlan plan = hand_made_site();
  plan.spec.priced = true;
  for (SiteHour& hour : plan.spec.hours) hour.usd_per_kwh = -0.02;
  const SiteBooks books = site_books(plan, training_for(24), 0);
  CHECK(books.sum.energy_usd == doctest::Approx(-0.02 * 12500 * 24).epsilon(1e-9));
}

TEST_CASE("books: a pause draws what machines that start draw, and is charged to what caused it") {
  SitePlan plan = hand_made_site();
  plan.spec.hours[5].limit = Watts{5e6};
  plan.spec.hours[6].limit = Watts{1e6};  // not even machines that idle
  const SiteBooks books = site_books(plan, training_for(24), 0);
  CHECK(mwh(books.hours[5].of.machines) == doctest::Approx(2));
  CHECK(mwh(books.hours[6].of.machines) == doctest::Approx(0));
  CHECK(books.lost[static_cast<std::size_t>(SiteBound::grid)] == doctest::Approx(2 * 3600));
  CHECK(books.lost[static_cast<std::size_t>(SiteBound::cooling)] == 0);
  CHECK(books.power.provisioned == std::nullopt);
}

}  // namespace lockstep
