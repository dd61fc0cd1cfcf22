#include "sim/site/site_books.hpp"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <memory>
#include <vector>

#include "models/site/plant.hpp"
#include "sim/run/trajectory.hpp"
#include "sim/site/power_path.hpp"
#include "sim/site/site_clock.hpp"
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

TEST_CASE("site books: hours that are repeated fall into the months in which they are met") {
  SitePlan plan = hand_made_site();  // a day of January
  plan.spec.demand_usd_per_kw_month = 10;
  TrajectoryResult run;
  run.phases = {{0, RunBucket::productive}};
  run.wall = at_hour(24 * 40);
  const SiteBooks books = site_books(plan, run, 0);
  REQUIRE(books.months.size() == 2);
  CHECK(books.months[0].month == 1);
  CHECK(books.months[0].length == Seconds{31 * 86'400.0});
  CHECK(books.months[1].month == 2);
  CHECK(books.months[1].length == Seconds{9 * 86'400.0});
  // Twice the highest hour of 12.5 MW.
  CHECK(books.demand_usd == doctest::Approx(2 * 12'500 * 10));
}

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
  // What the battery holds: full at first, what goes in at its efficiency, never more nor less than
  // it has room for.
  double stored = 8;
  for (const SiteHourBook& hour : books.hours) {
    check_balance(hour.of);
    stored += 0.9 * mwh(hour.of.battery_in) - mwh(hour.of.battery_out);
    CHECK(stored <= 8 + 1e-9);
    CHECK(stored >= -1e-9);
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

TEST_CASE("books: a demand charge is the price of the highest hour that each month takes") {
  SitePlan plan = hand_made_site();
  plan.spec.priced = true;
  plan.spec.solar = Watts{5e6};
  plan.spec.demand_usd_per_kw_month = 10;
  // The site draws 12.5 MW: 7.5 from the grid while the sun shines, which it does but for the
  // fourth hour of the first month and half of an hour's strength in one of the second.
  for (std::size_t h = 0; h < plan.spec.hours.size(); ++h) {
    SiteHour& hour = plan.spec.hours[h];
    hour.solar = h == 3 ? 0 : h == 20 ? 0.5 : 1;
    hour.month = h < 12 ? 1 : 2;
  }
  const SiteBooks books = site_books(plan, training_for(24), 0);
  REQUIRE(books.months.size() == 2);
  CHECK(books.months[0].demand_usd == doctest::Approx(12'500 * 10).epsilon(1e-9));
  CHECK(books.months[1].demand_usd == doctest::Approx(10'000 * 10).epsilon(1e-9));
  CHECK(books.demand_usd == doctest::Approx(225'000).epsilon(1e-9));
  CHECK(mwh(books.sum.imported) == doctest::Approx(24 * 7.5 + 5 + 2.5).epsilon(1e-9));
  CHECK(books.usd() == doctest::Approx(books.sum.energy_usd + 225'000).epsilon(1e-9));
}

TEST_CASE("books: the rise after a limit is lost, but does not hold back the hour that it is in") {
  SitePlan plan = hand_made_site();
  plan.spec.hours[1].limit = Watts{7.5e6};
  plan.spec.ramp_w_per_s = 1e4;  // 5 MW of the facility take 500 s, of which half is lost
  const SiteBooks books = site_books(plan, training_for(4), 0);
  CHECK(books.unbound_share() == doctest::Approx(3.0 / 4).epsilon(1e-12));
  double lost = 0;
  for (const double seconds : books.hours[2].lost) lost += seconds;
  CHECK(lost == doctest::Approx(0.5 * 250).epsilon(1e-9));
  CHECK(books.hours[2].lost[static_cast<std::size_t>(SiteBound::ramp)] ==
        doctest::Approx(lost).epsilon(1e-9));
}

TEST_CASE("books: bounds add up to what the site's pace took, with the ramp as one of them") {
  SitePlan plan = hand_made_site();
  plan.spec.hours[1].limit = Watts{7.5e6};
  plan.spec.hours[2].limit = Watts{10e6};
  plan.spec.ramp_w_per_s = 1e3;  // 2.5 MW of the facility take 2,500 s
  for (const bool lots : {false, true}) {
    CAPTURE(lots);
    if (lots) {
      plan.fleet = test::a_quarter_at_first();
      plan.spec.hours[1].limit = Watts{2e6};  // a quarter of them takes 3.1 MW
    }
    SiteClock clock(plan, 0);
    double slowed = 0;
    for (RunTime now = 0; now < at_hour(12);) {
      const SiteState state = clock.at(now);
      const RunTime until = std::min(state.until, at_hour(12));
      const double there = plan.fleet ? plan.fleet->pace(now).speed : 1;
      slowed += there * (1 - state.speed) * to_seconds(until - now).base_units();
      now = until;
    }
    const SiteBooks books = site_books(plan, training_for(12), 0);
    const auto lost = [&](SiteBound by) { return books.lost[static_cast<std::size_t>(by)]; };
    CHECK(lost(SiteBound::grid) + lost(SiteBound::ramp) == doctest::Approx(slowed).epsilon(1e-9));
    CHECK(lost(SiteBound::none) == doctest::Approx(0));
    CHECK(slowed > 0);
    if (lots) continue;
    CHECK(lost(SiteBound::ramp) == doctest::Approx(2 * 0.25 * 1250));
    CHECK(lost(SiteBound::grid) == doctest::Approx(0.5 * 3600 + 0.25 * 3600));
  }
}

TEST_CASE("books: carbon is unknown where nobody says the grid's intensity") {
  SitePlan plan = hand_made_site();
  plan.grams_per_kwh.reset();
  const SiteBooks books = site_books(plan, training_for(24), 0);
  CHECK_FALSE(books.sum.grams);
  CHECK_FALSE(books.months.front().of.grams);
  CHECK_FALSE(usage_of(site_bill(plan, books), Seconds{1}, 1, Flops{}).grams);
  plan.spec.counted_carbon = true;  // by the hour counts as said
  CHECK(site_books(plan, training_for(24), 0).sum.grams == 0.0);
}

TEST_CASE("books: machines that come later draw from then on, and own ones pay for themselves") {
  SitePlan plan = hand_made_site();
  plan.fleet = test::a_quarter_at_first();
  plan.spec.demand_usd_per_kw_month = 10;
  const TrajectoryResult run = run_of_phases({{0, RunBucket::productive},
                                              {at_hour(2), RunBucket::restart},
                                              {at_hour(3), RunBucket::diagnosis},
                                              {at_hour(4), RunBucket::checkpoint},
                                              {at_hour(5), RunBucket::productive}},
                                             at_hour(12));
  const SiteBooks books = site_books(plan, run, 0);
  const std::vector<double> machines{2.5, 2.5, 0.5, 0.25, 1.25, 2.5, 2.5, 2.5, 2.5, 2.5, 6.25, 10};
  REQUIRE(books.hours.size() == machines.size());
  for (std::size_t h = 0; h < machines.size(); ++h) {
    CAPTURE(h);
    CHECK(mwh(books.hours[h].of.machines) == doctest::Approx(machines[h]));
  }
  CHECK(books.power.machines.base_units() == doctest::Approx(10e6));
  // Half of the last hour but one draws as much as all of the last.
  CHECK(books.power.highest.level.base_units() == doctest::Approx(12.5e6));
  CHECK(books.power.highest.busy == doctest::Approx(1));
  // A fifth of the nodes are own, then four fifths: as an hour begins. 12.5 MW in the last one.
  const std::vector<EnergyPayment> paid = energy_payments(plan, books);
  REQUIRE(paid.size() == machines.size() + 1);
  double usd = 0;
  for (std::size_t h = 0; h < machines.size(); ++h) {
    CHECK(paid[h].at.base_units() == doctest::Approx(3600.0 * static_cast<double>(h)));
    usd += paid[h].usd;
  }
  CHECK(usd == doctest::Approx(125 * (0.2 * 25.75 + 0.8 * 10)));
  CHECK(paid.back().usd == doctest::Approx(0.8 * 12'500 * 10));
  CHECK(paid.back().at.base_units() == doctest::Approx(12 * 3600));
}

TEST_CASE("books: nodes of a lot that the job has no place for stand idle") {
  SitePlan plan = hand_made_site();
  Fleet fleet = *test::a_quarter_at_first();
  fleet.steps[0] = {.at = Seconds{}, .nodes = 75, .used = 25, .own = 0, .speed = 0.25};
  plan.fleet = std::make_shared<const Fleet>(fleet);
  // 2.5 MW of a quarter at work, and half of the 1 MW that all take idle.
  const SiteBooks books = site_books(plan, training_for(4), 0);
  CHECK(mwh(books.sum.machines) == doctest::Approx(4 * 3.0));
  CHECK(books.power.highest.level.base_units() == doctest::Approx(1.25 * 3e6));
  CHECK(books.power.highest.busy == doctest::Approx(0.25));
  // The grid has 2.5 MW for machines: 0.5 idle, and 2 for a quarter that takes 2.5 at full pace.
  for (SiteHour& hour : plan.spec.hours) hour.limit = Watts{1.25 * 2.5e6};
  const SiteState state = SiteClock(plan, 0).at(0);
  CHECK(state.training.base_units() == doctest::Approx(2.5e6));
  CHECK(state.speed == doctest::Approx(0.75));
  CHECK_FALSE(state.down);
}

TEST_CASE("books: the grid's room is for what the grid gives, the path's for the machines") {
  SitePlan plan = hand_made_site();
  plan.spec.solar = Watts{5e6};
  for (SiteHour& hour : plan.spec.hours) {
    hour.solar = 1;
    hour.limit = Watts{8e6};
  }
  const auto power = [&] { return site_books(plan, training_for(24), 0).power; };
  // 10 MW of machines take 12.5: 5 of the sun and 7.5 of the grid.
  CHECK(power().drawn.base_units() == doctest::Approx(12.5e6));
  CHECK(power().imported.base_units() == doctest::Approx(7.5e6));
  REQUIRE(power().tightest());
  CHECK(power().tightest()->brings == Watts{8e6});
  CHECK(power().tightest()->left().base_units() == doctest::Approx(0.5e6));
  // 10.2 MW through a path leave less; it never carries what cools the machines.
  const UnitBank line{
      .name = "line", .units = 1, .mean_time = {}, .repair = Seconds{3600}, .crews = 0};
  const UnitBank row{
      .name = "row", .units = 1, .mean_time = {}, .repair = Seconds{3600}, .crews = 0};
  plan.spec.path = {{.bank = line, .capacity = Watts{10.2e6}, .from = {}, .nodes = 0},
                    {.bank = row, .capacity = {}, .from = {0}, .nodes = 100}};
  REQUIRE(power().path);
  CHECK(power().path->base_units() == doctest::Approx(10.2e6));
  CHECK(power().tightest()->left().base_units() == doctest::Approx(0.2e6));
}

TEST_CASE("books: an oversubscribed path holds cards, and what that costs is told") {
  SitePlan plan = hand_made_site();
  UnitBank line{.name = "line", .units = 2, .mean_time = {}, .repair = Seconds{3600}, .crews = 0};
  UnitBank row = line;
  row.units = 10;
  plan.spec.path = {{.bank = line, .capacity = {}, .oversubscription = 1.5, .from = {}, .nodes = 0},
                    {.bank = row, .capacity = {}, .from = {0}, .nodes = 10}};
  // 100 nodes of 0.12 MW over 1.5: two lines of 4 MW.
  plan.spec.path = with_capacities(plan.spec.path, Watts{0.12e6}, 1.25);
  CHECK(plan.spec.path[0].capacity.base_units() == doctest::Approx(4e6));
  CHECK(plan.spec.path[1].capacity == Watts{});
  // 8 MW are halfway from 10 MW at full pace to 6 MW at half of it.
  const PathCapping held = site_books(plan, training_for(24), 0).capping;
  CHECK(held.capped.base_units() == doctest::Approx(24 * 3600));
  CHECK(held.capped == held.trained);
  CHECK(held.stretch() == doctest::Approx(1 / 0.75));
  CHECK(held.lowest_draw == doctest::Approx(0.8));
  CHECK(held.lost.base_units() == doctest::Approx(6 * 3600));
  plan.node_peak = Watts{0.12e6};
  const auto provision = path_provision(plan, site_books(plan, training_for(24), 0).power);
  REQUIRE(provision);
  CHECK(provision->oversubscription() == doctest::Approx(1.5));
  CHECK(provision->avoided().base_units() == doctest::Approx(4e6));
  // At 1.2 the lines bring 10 MW, which is what machines draw.
  plan.spec.path[0].oversubscription = 1.2;
  plan.spec.path = with_capacities(plan.spec.path, Watts{0.12e6}, 1.25);
  const PathCapping free = site_books(plan, training_for(24), 0).capping;
  CHECK(free.capped == Seconds{});
  CHECK(free.stretch() == 1);
  plan.spec.path[0].capacity = Watts{};
  CHECK_FALSE(path_provision(plan, site_books(plan, training_for(24), 0).power));
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
  CHECK_FALSE(books.power.tightest());
  CHECK(books.power.path == std::nullopt);
}

namespace {

constexpr double kWanted = 12.5, kBySun = 2.5;  // MW from the grid, half a day each

/// January, in whose days the site takes 12.5 MW from the grid for twelve hours, and 2.5 MW for
/// twelve.
SitePlan square_wave(double energy_mwh, double efficiency) {
  SitePlan plan = hand_made_site();
  plan.spec.solar = Watts{10e6};
  for (SiteHour& hour : plan.spec.hours) hour.solar = hour.hour < 12 ? 0 : 1;
  plan.spec.demand_usd_per_kw_month = 10;
  plan.spec.battery = BatterySpec{.energy_mwh = energy_mwh,
                                  .power = Watts{50e6},
                                  .efficiency = efficiency,
                                  .shave_lowest = true};
  return plan;
}
constexpr double kJanuary = 31 * 24;

void check_shaved(const SiteBooks& books, const SitePlan& plan, double to_mw) {
  constexpr double kSameEnergy = 1e-9;
  CHECK(books.months[0].shave_above->base_units() ==
        doctest::Approx(1e6 * to_mw).epsilon(kSameEnergy));
  CHECK(books.months[0].peak.base_units() == doctest::Approx(1e6 * to_mw).epsilon(kSameEnergy));
  CHECK(books.demand_usd == doctest::Approx(to_mw * 1e3 * 10).epsilon(kSameEnergy));
  double usd = 0;
  for (const SiteHourBook& hour : books.hours) {
    check_balance(hour.of);
    usd += hour.of.energy_usd;
  }
  check_balance(books.sum);
  CHECK(usd + books.demand_usd == doctest::Approx(books.usd()).epsilon(kSameEnergy));
  CHECK(books.sum.energy_usd ==
        doctest::Approx(mwh(books.sum.imported) * 100).epsilon(kSameEnergy));
  const Joules kept = *books.battery_begin + plan.spec.battery->efficiency * books.sum.battery_in -
                      books.sum.battery_out;
  CHECK(std::abs((*books.battery_end - kept) / *books.battery_begin) < kSameEnergy);
}

}  // namespace

TEST_CASE("battery: the lowest power that it holds is what a half day of it covers") {
  // What is above fills twelve hours with its 12 MWh, and comes back in the other twelve.
  const SitePlan plan = square_wave(12, 0.8);
  check_shaved(site_books(plan, training_for(kJanuary), 0), plan, kWanted - 12.0 / 12);
}

TEST_CASE("battery: or what its losses let come back over the month, and what it begins with") {
  // 31 half days give what 30 half days have stored, and all that was in it:
  // 31 x 12 x (12.5 - t) = 200 + 30 x 12 x 0.8 x (t - 2.5).
  const SitePlan plan = square_wave(200, 0.8);
  const double held =
      (31 * 12 * kWanted + 30 * 12 * 0.8 * kBySun - 200) / (31 * 12 + 30 * 12 * 0.8);
  const SiteBooks books = site_books(plan, training_for(kJanuary), 0);
  check_shaved(books, plan, held);
  // Empty after the last of these half days, and charged in the half day that is left.
  CHECK(mwh(*books.battery_end) == doctest::Approx(0.8 * 12 * (held - kBySun)).epsilon(1e-6));
}

TEST_CASE("battery: above a power that is given it stands in as long as it lasts") {
  SitePlan plan = square_wave(9, 1);
  plan.spec.battery->shave_lowest = false;
  plan.spec.battery->shave_above = Watts{8e6};
  const SiteBooks books = site_books(plan, training_for(24), 0);
  // 4.5 MW for two hours; then the grid gives all.
  CHECK(mwh(books.hours[0].of.imported) == doctest::Approx(8));
  CHECK(mwh(books.hours[1].of.imported) == doctest::Approx(8));
  CHECK(mwh(books.hours[2].of.imported) == doctest::Approx(kWanted));
  // 5.5 MW are left of it to be charged by.
  CHECK(mwh(books.hours[12].of.imported) == doctest::Approx(8));
  CHECK(mwh(books.hours[13].of.battery_in) == doctest::Approx(3.5));
  CHECK(mwh(*books.battery_end) == doctest::Approx(9));
}

TEST_CASE("battery: a peak is shaved to no less than a limit of the grid lets be held") {
  // Two hours in which the grid gives 8 MW need 9 MWh, which shaving may not take.
  SitePlan plan = square_wave(12, 1);
  plan.spec.hours[10].limit = plan.spec.hours[11].limit = Watts{8e6};
  const SiteBooks books = site_books(plan, training_for(kJanuary), 0);
  CHECK(mwh(books.sum.short_of) == doctest::Approx(0).epsilon(1e-6));
  // But for the billionth of the battery that its rule leaves to rounding: 43 J at 10 MW.
  CHECK(books.lost[static_cast<std::size_t>(SiteBound::grid)] < 5e-6);
  // The ten other hours share what is left of it.
  CHECK(books.months[0].peak.base_units() == doctest::Approx(1e6 * (kWanted - 3.0 / 10)));
}

namespace {

/// From three to five the grid gives 9.5 of the 12.5 MW: a battery of 5 MWh covers 3 MW of the
/// first hour, and has 2 MWh for the second.
SitePlan two_short_hours() {
  SitePlan plan = hand_made_site();
  plan.spec.battery = BatterySpec{
      .energy_mwh = 5, .power = Watts{4e6}, .efficiency = 0.8, .charge_power = Watts{1}};
  for (const std::size_t h : {3UL, 4UL}) plan.spec.hours[h].limit = Watts{9.5e6};
  return plan;
}

}  // namespace

TEST_CASE("battery: what a stop saves in an hour of a limit, the rest of the hour has") {
  // Three minutes of an idle 1.25 MW from 4:12 on. The hour has 11.5 MWh: 2.3 are used until then,
  // 0.0625 meanwhile, and what is left lets 9.1375 MWh / 0.75 h = 12.18 MW be drawn.
  const SitePlan plan = two_short_hours();
  const TrajectoryResult run = run_of_phases({{0, RunBucket::productive},
                                              {at_hour(4.2), RunBucket::diagnosis},
                                              {at_hour(4.25), RunBucket::productive}},
                                             at_hour(5));
  const SiteBooks books = site_books(plan, run, 0);
  CHECK(mwh(books.hours[3].of.battery_out) == doctest::Approx(3));
  CHECK(mwh(books.hours[4].of.facility) == doctest::Approx(11.5).epsilon(1e-9));
  CHECK(mwh(books.hours[4].of.imported) == doctest::Approx(9.5).epsilon(1e-9));
  CHECK(std::abs(mwh(*books.battery_end)) < 1e-9);
  // Lost: as much as the power that cards lack, a quarter of the speed for each 2.5 MW of the site.
  const double lost = 3600 * (0.2 * 1.0 + 0.75 * (12.5 - 9.1375 / 0.75)) / 2.5 * 0.25;
  CHECK(books.lost[static_cast<std::size_t>(SiteBound::grid)] == doctest::Approx(lost));
}

TEST_CASE("battery: what a stop saves in one hour, the next one has, never above its power") {
  // A stop of half an hour saves 0.5 h x 11.25 MW, so that the first hour needs no battery; then
  // the second has all 5 MWh, of which it needs 3.
  const SitePlan plan = two_short_hours();
  const TrajectoryResult run = run_of_phases({{0, RunBucket::productive},
                                              {at_hour(3), RunBucket::diagnosis},
                                              {at_hour(3.5), RunBucket::productive}},
                                             at_hour(5));
  const SiteBooks books = site_books(plan, run, 0);
  CHECK(mwh(books.hours[3].of.battery_out) == doctest::Approx(0));
  CHECK(mwh(books.hours[4].of.battery_out) == doctest::Approx(3));
  CHECK(books.lost[static_cast<std::size_t>(SiteBound::grid)] == doctest::Approx(0));
  // However much of an hour's energy is left, no more than grid and battery together give: 8.5 MW.
  SitePlan narrow = two_short_hours();
  narrow.spec.battery->power = Watts{1e6};
  narrow.spec.hours[4].limit = Watts{7.5e6};
  SiteClock clock(narrow, 0);
  (void)clock.at(at_hour(4));
  const std::vector<RunStop> stops{{at_hour(4), at_hour(4.5), RunBucket::repair_wait}};
  const SiteState after = clock.at(at_hour(4.5), stops);
  CHECK(1.25 * after.training.base_units() == doctest::Approx(8.5e6));
}

TEST_CASE("battery: a run's pace and its books give back the same") {
  const auto plan = std::make_shared<const SitePlan>(two_short_hours());
  Campaign campaign;
  campaign.work = Seconds{9 * 3600.0};
  campaign.modes = {{.name = "crash", .components = 1}};
  campaign.recovery = {.detects_crash = Seconds{10},
                       .detects_hang = Seconds{10},
                       .diagnoses = Seconds{120},
                       .restarts = Seconds{60}};
  campaign.tiers = {{.name = "s", .interval = Seconds{1800}}};
  campaign.pace = site_pace(plan, {});
  for (const std::vector<double>& at :
       {std::vector<double>{}, {3.3}, {4.2}, {4.2, 4.7}, {2.99}, {3.98}, {4.99}, {3.2, 3.5, 4.4}}) {
    CAPTURE(at.size());
    campaign.log.clear();
    for (const double hour : at) campaign.log.push_back({at_hour(hour), 0});
    const TrajectoryResult run = run_trajectory(campaign, 0, RunDetail::timeline);
    const SiteBooks books = site_books(*plan, run, 0);
    double lost = 0;
    for (const double by : books.lost) lost += by;
    CHECK(std::abs(lost - to_seconds(run.site_slowed).base_units()) < 1e-3);
    for (const SiteHourBook& hour : books.hours) check_balance(hour.of);
    CHECK(books.sum.short_of.base_units() < 1);
    CHECK(*books.battery_end >= Joules{});
  }
}

TEST_CASE("books: spot nodes that are away draw nothing, and no share of the energy is theirs") {
  // Of 100 nodes 80 work; 40 are spot nodes, which a tenth of the time are away.
  Fleet fleet{.spec = {},
              .steps = {{.at = Seconds{}, .nodes = 100, .used = 80, .own = 60, .speed = 1}},
              .begins = {},
              .gpus_per_node = 8,
              .waiting_node = {},
              .usd_per_kwh = 0,
              .assumptions = {}};
  SitePlan plan = hand_made_site();
  plan.nodes = 80;
  const auto books_of = [&](double away) {
    fleet.steps[0].away = away;
    plan.fleet = std::make_shared<const Fleet>(fleet);
    return site_books(plan, training_for(10), 0);
  };
  const SiteBooks all = books_of(0), less = books_of(4);
  // 1 MW idle is of 80 nodes.
  CHECK(mwh(all.sum.machines) == doctest::Approx(10 * (10 + 20 / 80.0)));
  CHECK(mwh(less.sum.machines) == doctest::Approx(10 * (10 + 16 / 80.0)));
  CHECK(less.power.highest.level == all.power.highest.level);  // at times all are there
  CHECK(energy_payments(plan, less).front().usd ==
        doctest::Approx(60.0 / 96 * less.hours[0].of.energy_usd));
}

TEST_CASE("plants: prices by energy, capacity and heat, written off as the building is") {
  SiteSpec spec;
  CHECK(plants_usd(spec) == 0);
  // 10 MWh at 200 a kWh and 8 MW at 100 a kW; two lines of 12 MW at 50 and three generators of
  // 5 MW at 400; five chillers of 4 MW of heat at 150.
  spec.battery = BatterySpec{.energy_mwh = 10, .power = Watts{8e6}};
  spec.battery->usd_per_kwh = 200;
  spec.battery->usd_per_kw = 100;
  PowerPart lines, generators;
  lines.bank.units = 2;
  lines.capacity = Watts{10e6};  // that it leaves to machines, at a PUE of 1.2
  lines.over_machines = 1.2;
  lines.usd_per_kw = 50;
  generators.bank.units = 3;
  generators.capacity = Watts{5e6};
  generators.usd_per_kw = 400;
  spec.path = {lines, generators};
  spec.cooling.emplace();
  spec.cooling->bank.units = 5;
  spec.cooling->law.unit_heat = Watts{4e6};
  spec.cooling->usd_per_kw = 150;
  const double usd = 2e6 + 0.8e6 + 1.2e6 + 6e6 + 3e6;
  CHECK(plants_usd(spec) == doctest::Approx(usd).epsilon(1e-12));
  // A tenth of a year, of five that are half used: a 25th of it.
  CostSpec prices;
  prices.years = 5;
  prices.utilisation = 0.5;
  const Usage usage{.time = Seconds{0.1 * 365.25 * 86'400},
                    .energy = {},
                    .tokens = 2e12,
                    .model_flops = Flops{1e18}};
  CostReport before;
  before.building_usd = 1e6;
  before.capital.building_usd = 5e6;
  const CostReport cost = with_plants(before, usd, prices, usage);
  CHECK(cost.capital.building_usd == doctest::Approx(5e6 + usd));
  CHECK(cost.building_usd == doctest::Approx(1e6 + usd / 25));
  CHECK(cost.total_usd() - before.total_usd() == doctest::Approx(usd / 25));
  CHECK(cost.usd_per_trillion_tokens == doctest::Approx((1e6 + usd / 25) / 2));
  CHECK(cost.usd_per_eflop == doctest::Approx(1e6 + usd / 25));
}

}  // namespace lockstep
