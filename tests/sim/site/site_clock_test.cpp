#include "sim/site/site_clock.hpp"

#include <cmath>
#include <doctest/doctest.h>

#include "sim/site/power_path.hpp"
#include "tests/sim/site/hand_made_site.hpp"

namespace lockstep {
namespace {

using test::at_hour;
using test::hand_made_site;

UnitBank never_failing(const char* name, int units = 1) {
  return {.name = name, .units = units, .mean_time = {}, .repair = Seconds{3600}, .crews = 0};
}
PowerPart part(const UnitBank& bank, double megawatts, std::vector<std::size_t> from,
               int nodes = 0) {
  return {
      .bank = bank, .capacity = Watts{megawatts * 1e6}, .from = std::move(from), .nodes = nodes};
}

}  // namespace

TEST_CASE("site: where nothing binds, the job has its full pace from hour to hour") {
  const SitePlan plan = hand_made_site();
  SiteClock clock(plan, 0);
  for (int hour = 0; hour < 50; ++hour) {
    const SiteState state = clock.at(at_hour(hour));
    CHECK(state.until == at_hour(hour + 1));
    CHECK(state.hour == hour);
    CHECK(state.speed == 1);
    CHECK(state.training == Watts{10e6});
    CHECK(state.bound == SiteBound::none);
  }
}

TEST_CASE("site: what the grid gives sets the pace, then pauses the job, then turns it off") {
  SitePlan plan = hand_made_site();
  // Of facility power: 12.5 MW at full pace, 7.5 MW at the lowest; machines idle at 1.25 MW.
  const std::vector<double> limits{12.5, 10, 7.5, 7.4, 1.3, 1.2};
  for (std::size_t h = 0; h < limits.size(); ++h) plan.spec.hours[h].limit = Watts{1e6 * limits[h]};
  SiteClock clock(plan, 0);
  const std::vector<double> speeds{1, 0.75, 0.5, 0, 0, 0};
  for (std::size_t h = 0; h < limits.size(); ++h) {
    CAPTURE(limits[h]);
    const SiteState state = clock.at(at_hour(static_cast<double>(h)));
    CHECK(state.speed == doctest::Approx(speeds[h]));
    CHECK(state.down == (h == 5));
    CHECK_FALSE(state.abrupt);
    CHECK((state.bound == SiteBound::grid) == (h > 0));
    if (speeds[h] > 0) {
      CHECK(1.25 * state.training.base_units() == doctest::Approx(1e6 * limits[h]));
    }
  }
}

TEST_CASE("site: what is not there draws nothing, and a limit holds only what is there") {
  SitePlan plan = hand_made_site();
  plan.fleet = test::a_quarter_at_first();
  // 25 of 100 nodes want 3.125 MW of the facility, and 1.875 at the lowest pace.
  for (SiteHour& hour : plan.spec.hours) hour.limit = Watts{3.2e6};
  plan.spec.hours[1].limit = Watts{2.5e6};
  plan.spec.hours[2].limit = Watts{1.8e6};
  plan.spec.hours[3].limit = Watts{0.3e6};  // idle they want 0.3125
  SiteClock clock(plan, 0);
  const std::vector<double> speeds{1, 0.75, 0, 0, 1};
  const std::vector<double> training{2.5e6, 2e6, 0.5e6, 0, 2.5e6};
  for (std::size_t h = 0; h < speeds.size(); ++h) {
    CAPTURE(h);
    const SiteState state = clock.at(at_hour(static_cast<double>(h)));
    CHECK(state.speed == doctest::Approx(speeds[h]));
    CHECK(state.training.base_units() == doctest::Approx(training[h]));
    CHECK(state.down == (h == 3));
    CHECK(state.machines.working == 0.25);
  }
  CHECK(clock.at(at_hour(10)).until == at_hour(10.5));
  // All of them want more than 3.2 MW at any pace, and idle they have enough.
  const SiteState all = clock.at(at_hour(10.5));
  CHECK(all.machines.working == 1);
  CHECK(all.speed == 0);
  CHECK_FALSE(all.down);
  CHECK(all.until == at_hour(11));
}

TEST_CASE("site: a battery stands in for the grid as long as it has energy, and is filled again") {
  SitePlan plan = hand_made_site();
  plan.spec.battery = BatterySpec{.energy_mwh = 5, .power = Watts{4e6}, .efficiency = 0.8};
  for (SiteHour& hour : plan.spec.hours) hour.limit = Watts{15e6};
  for (const std::size_t h : {3UL, 4UL}) plan.spec.hours[h].limit = Watts{9.5e6};
  SiteClock clock(plan, 0);
  for (int hour = 0; hour < 3; ++hour) CHECK(clock.at(at_hour(hour)).speed == 1);
  // 3 MW are missing: the first hour takes 3 of its 5 MWh, the second the last 2.
  CHECK(clock.at(at_hour(3)).speed == doctest::Approx(1));
  const SiteState second = clock.at(at_hour(4));
  CHECK(1.25 * second.training.base_units() == doctest::Approx(11.5e6));
  // Then 2.5 MW of room fill it at 80 %: 2 MWh an hour.
  CHECK(dispatched(plan, 5, Watts{12.5e6}, Joules{}, Seconds{3600}).in.base_units() ==
        doctest::Approx(2.5e6 * 3600));
  const Joules nearly_full{4.6 * 3.6e9};
  CHECK(dispatched(plan, 5, Watts{12.5e6}, nearly_full, Seconds{3600}).in.base_units() ==
        doctest::Approx(0.4 / 0.8 * 3.6e9));
}

TEST_CASE("site: by tariff a battery is filled when it is cheap and emptied when it is dear") {
  SitePlan plan = hand_made_site();
  plan.spec.battery = BatterySpec{.energy_mwh = 5,
                                  .power = Watts{4e6},
                                  .efficiency = 0.8,
                                  .charge_below = 0.0,
                                  .discharge_above = 0.2};
  plan.spec.priced = true;
  plan.spec.hours[0].usd_per_kwh = -0.01;
  plan.spec.hours[1].usd_per_kwh = 0.1;
  plan.spec.hours[2].usd_per_kwh = 0.3;
  const auto of = [&](std::int64_t hour) {
    return dispatched(plan, hour, Watts{12.5e6}, Joules{1e9}, Seconds{3600});
  };
  CHECK(of(0).in.base_units() == doctest::Approx(4e6 * 3600));
  CHECK(of(1).in == Joules{});
  CHECK(of(1).out == Joules{});
  CHECK(of(2).out.base_units() == doctest::Approx(1e9));
}

TEST_CASE("site: a battery that is only told when to empty is filled in all other hours") {
  SitePlan plan = hand_made_site();
  plan.spec.battery =
      BatterySpec{.energy_mwh = 5, .power = Watts{4e6}, .efficiency = 0.8, .discharge_above = 0.2};
  plan.spec.priced = true;
  for (SiteHour& hour : plan.spec.hours) {
    hour.limit = Watts{15e6};
    hour.usd_per_kwh = 0.05;
  }
  plan.spec.hours[1].usd_per_kwh = 0.3;
  const auto of = [&](std::int64_t hour, Joules stored) {
    return dispatched(plan, hour, Watts{12.5e6}, stored, Seconds{3600});
  };
  // The limit leaves 2.5 of its 4 MW; from what it holds, a MWh comes out in the dear hour.
  CHECK(of(0, Joules{3.6e9}).in.base_units() == doctest::Approx(2.5e6 * 3600));
  CHECK(of(0, Joules{3.6e9}).out == Joules{});
  CHECK(of(1, Joules{3.6e9}).out.base_units() == doctest::Approx(3.6e9));
  CHECK(of(1, Joules{3.6e9}).in == Joules{});
  CHECK(of(0, Joules{5 * 3.6e9}).in == Joules{});
}

TEST_CASE("site: warm coolant holds cards to the power that their chips stand") {
  SitePlan plan = hand_made_site();
  plan.spec.cooling = CoolingPlant{.bank = never_failing("", 10),
                                   .law = {.unit_heat = Watts{1e6},
                                           .approach_kelvin = 10,
                                           .set_point_celsius = 20,
                                           .rated_celsius = 35,
                                           .slowdown_celsius = 85},
                                   .sink = HeatSink::dry,
                                   .cycles = 4};
  plan.spec.hours[0].outside_celsius = 25;  // 35 at full heat: it just fits
  plan.spec.hours[1].outside_celsius = 45;
  plan.spec.hours[2].outside_celsius = 70;  // 76 at the lowest: a fifth of the limit, not half
  SiteClock clock(plan, 0);
  CHECK(clock.at(at_hour(0)).speed == 1);
  const SiteState warm = clock.at(at_hour(1));
  // share s draws 2 + 8 s MW: s = (85 - 45 - (2 + 8 s)) / 50, so s = 38 / 58.
  CHECK(warm.speed == doctest::Approx(38.0 / 58));
  CHECK(warm.coolant == doctest::Approx(45 + 2 + 8 * 38.0 / 58));
  CHECK(warm.bound == SiteBound::cooling);
  CHECK(clock.at(at_hour(2)).speed == 0);
}

TEST_CASE("site: chillers hold cards to the heat that they carry, and to nothing else") {
  SitePlan plan = hand_made_site();
  plan.spec.cooling = CoolingPlant{.bank = never_failing("", 4),
                                   .law = {.chills = true,
                                           .unit_heat = Watts{2e6},
                                           .approach_kelvin = 10,
                                           .set_point_celsius = 20,
                                           .rated_celsius = 35,
                                           .slowdown_celsius = 85},
                                   .sink = HeatSink::chiller,
                                   .cycles = 4};
  for (const double outside : {-10.0, 45.0}) {
    for (SiteHour& hour : plan.spec.hours) hour.outside_celsius = outside;
    plan.spec.cooling->bank.units = 4;
    SiteClock clock(plan, 0);
    // Of 10 MW they carry 8, and a share s of the limit draws 2 + 8 s.
    const SiteState held = clock.at(0);
    CHECK(held.training.base_units() == doctest::Approx(8e6));
    CHECK(held.speed == doctest::Approx(0.75));
    CHECK(held.coolant == 20);
    CHECK(held.bound == SiteBound::cooling);
    plan.spec.cooling->bank.units = 5;
    SiteClock enough(plan, 0);
    CHECK(enough.at(0).speed == 1);
  }
}

TEST_CASE(
    "site: coolant gets warmer across each stage of the loop, and more where units are down") {
  SitePlan plan = hand_made_site();
  plan.spec.cooling = CoolingPlant{.bank = never_failing("", 10),
                                   .law = {.unit_heat = Watts{1e6},
                                           .approach_kelvin = 5,
                                           .set_point_celsius = 20,
                                           .rated_celsius = 45,
                                           .slowdown_celsius = 85},
                                   .loop = {{never_failing("pump", 5), Watts{2e6}, 2},
                                            {never_failing("CDU", 20), Watts{1e6}, 4}},
                                   .sink = HeatSink::dry,
                                   .cycles = 4};
  // 10 MW: 5 K over the sink, 2 across the pumps, half of 4 across the CDUs.
  for (SiteHour& hour : plan.spec.hours) hour.outside_celsius = 25;
  plan.spec.hours[1].outside_celsius = 5;  // 10 is below the set point; the loop comes on top
  SiteClock clock(plan, 0);
  CHECK(clock.at(0).coolant == doctest::Approx(34));
  CHECK(clock.at(at_hour(1)).coolant == doctest::Approx(24));
  // The only pump fails at some time: then nothing carries the heat away, machines turn themselves
  // off in good order, and no temperature is told of them.
  plan.spec.cooling->loop[0].bank = {
      .name = "pump", .units = 1, .mean_time = Seconds{36'000}, .repair = Seconds{36'000}};
  plan.spec.cooling->loop[0].unit_heat = Watts{10e6};
  SiteClock failing(plan, 0);
  bool off = false;
  for (RunTime now = 0; now < at_hour(500);) {
    const SiteState state = failing.at(now);
    if (state.down) {
      off = true;
      CHECK(state.bound == SiteBound::cooling);
      CHECK_FALSE(state.abrupt);
      CHECK(state.coolant == 0);
      CHECK(state.training == Watts{});
    } else {
      CHECK(std::isfinite(state.coolant));
    }
    now = state.until;
  }
  CHECK(off);
}

TEST_CASE("site: a path that does not bring what idle machines take turns them off") {
  SitePlan plan = hand_made_site();
  const auto state_behind = [&](double megawatts) {
    plan.spec.path = {part(never_failing("line"), megawatts, {}, 100)};
    return SiteClock(plan, 0).at(0);
  };
  CHECK(state_behind(10).speed == 1);
  CHECK(state_behind(6).speed == doctest::Approx(0.5));
  // Between idle (1 MW) and starting (2 MW) the job pauses on what there is.
  CHECK(state_behind(1.5).speed == 0);
  CHECK_FALSE(state_behind(1.5).down);
  CHECK(state_behind(1.5).training.base_units() == doctest::Approx(1.5e6));
  CHECK(state_behind(0.9).down);
  CHECK(state_behind(0.9).bound == SiteBound::path);
  CHECK_FALSE(state_behind(0.9).abrupt);
}

TEST_CASE("site: a rise takes the ramp's time, of which half is lost") {
  SitePlan plan = hand_made_site();
  plan.spec.hours[0].limit = Watts{7.5e6};
  plan.spec.ramp_w_per_s = 1e4;  // 5 MW of the facility take 500 s
  SiteClock clock(plan, 0);
  CHECK(clock.at(0).speed == doctest::Approx(0.5));
  const SiteState state = clock.at(at_hour(1));
  CHECK(state.speed == doctest::Approx(1 - 0.5 * 250.0 / 3600));
  CHECK(state.training.base_units() == doctest::Approx(10e6 - 4e6 * 250.0 / 3600));
  CHECK(clock.at(at_hour(2)).speed == 1);
}

TEST_CASE("path: nodes get what the narrowest bank lets through, alike, and A or B is enough") {
  const std::vector<PowerPart> path{
      part(never_failing("line", 2), 10, {}), part(never_failing("A"), 8, {0}),
      part(never_failing("B"), 8, {0}), part(never_failing("row", 10), 0, {1, 2}, 10)};
  const Watts per_node{0.15e6};  // 15 MW in all
  const auto with = [&](std::vector<int> down) { return delivered(path, down, per_node); };
  CHECK(fed_nodes(path) == 100);
  CHECK(with({0, 0, 0, 0}).nodes == 100);
  CHECK(with({0, 0, 0, 0}).share == 1);
  CHECK(with({1, 0, 0, 0}).share == doctest::Approx(10.0 / 15));
  CHECK(with({0, 1, 0, 0}).share == doctest::Approx(8.0 / 15));
  CHECK(with({0, 1, 1, 0}).nodes == 0);
  CHECK(with({2, 0, 0, 0}).nodes == 0);
  // A row that is down leaves more to the others.
  CHECK(with({1, 0, 0, 3}).nodes == 70);
  CHECK(with({1, 0, 0, 3}).share == doctest::Approx(10.0 / 10.5));
  CHECK(deliverable(path, std::vector{0, 0, 0, 0}).base_units() == doctest::Approx(16e6));
  CHECK(deliverable(path, std::vector{1, 0, 0, 0}).base_units() == doctest::Approx(10e6));
}

TEST_CASE(
    "site: a row that fails stops the job at once, and it waits while too few nodes are fed") {
  SitePlan plan = hand_made_site();
  UnitBank row = never_failing("row", 10);
  row.mean_time = Seconds{10 * 3600.0 * 20};  // one of ten every 20 hours
  row.repair = Seconds{3600};
  plan.spec.path = {part(row, 0, {}, 10)};
  const auto down_share = [&](int nodes) {
    plan.nodes = nodes;
    SiteClock clock(plan, 3);
    double down = 0;
    const RunTime end = at_hour(20'000);
    for (RunTime now = 0; now < end;) {
      const SiteState state = clock.at(now);
      CHECK(state.down == (state.bound == SiteBound::path));
      if (state.down) down += to_seconds(state.until - now) / to_seconds(end);
      now = state.until;
    }
    return down;
  };
  // All ten rows are needed: down unless all are up, (200 / 201)^10. 20,000 hours have about 1,000
  // failures: within 4 / sqrt(1000).
  CHECK(down_share(100) == doctest::Approx(1 - std::pow(200.0 / 201, 10)).epsilon(0.13));
  // With a row in reserve only two at once matter.
  const double two = 1 - std::pow(200.0 / 201, 10) - 10 * std::pow(200.0 / 201, 9) / 201;
  CHECK(down_share(90) == doctest::Approx(two).epsilon(0.5));
}

TEST_CASE("path: behind A and B nodes are without power as long as both are down, in series more") {
  SitePlan plan = hand_made_site();
  UnitBank feed = never_failing("A", 1);
  feed.mean_time = Seconds{9 * 3600.0};
  feed.repair = Seconds{3600};  // each is up nine tenths of the time
  UnitBank other = feed;
  other.name = "B";
  const UnitBank row = never_failing("row", 10);
  const auto without = [&](std::vector<PowerPart> path) {
    plan.spec.path = std::move(path);
    PathClock clock(plan.spec.path, Watts{0.1e6}, 11, 0);
    double down = 0;
    const RunTime end = at_hour(60'000);
    for (RunTime now = 0; now < end;) {
      const RunTime until = std::min(clock.next_at(), end);
      if (clock.got().nodes == 0) down += to_seconds(until - now) / to_seconds(end);
      now = until;
      clock.advance(now);
    }
    return down;
  };
  // 1 - (1 - a)^2, and a^2. 60,000 hours have 6,000 repairs of each: within four of their standard
  // deviations, and of 600 times that both were down.
  CHECK(without({part(feed, 0, {}, 0), part(other, 0, {}, 0), part(row, 0, {0, 1}, 10)}) ==
        doctest::Approx(0.01).epsilon(0.2));
  CHECK(without({part(feed, 0, {}, 0), part(other, 0, {0}, 0), part(row, 0, {1}, 10)}) ==
        doctest::Approx(0.19).epsilon(0.06));
}

TEST_CASE("bank process: over a long time units are down as often as the closed form says") {
  const UnitBank bank{
      .name = "u", .units = 6, .mean_time = Seconds{3000}, .repair = Seconds{600}, .crews = 2};
  const std::vector<double> law = units_down(bank);
  BankProcess process(bank, 7, 0, 0);
  std::vector<double> seen(7, 0.0);
  const RunTime end = to_run_time(Seconds{6e7});
  RunTime now = 0;
  while (now < end) {
    const RunTime next = std::min(process.next_at(), end);
    seen[static_cast<std::size_t>(process.down())] += to_seconds(next - now) / to_seconds(end);
    now = next;
    process.advance(now);
  }
  // 1e5 relaxation times: shares within 2 % of the largest.
  for (std::size_t i = 0; i < law.size(); ++i) {
    CAPTURE(i);
    CHECK(std::abs(seen[i] - law[i]) < 0.008);
  }
}

}  // namespace lockstep
