#include "sim/site/held_power.hpp"

#include <doctest/doctest.h>

#include "tests/sim/site/hand_made_site.hpp"

namespace lockstep {
namespace {

constexpr double kHour = 3600;
constexpr double kKwh = 3.6e6;

/// Ten nodes and two in reserve: 100 kW at work without these, 1 kW idle a node, a swing of 4 kW
/// for a meter and of 9 for nobody.
StepPower ten_nodes_and_two() {
  StepPower power;
  power.levels.training.facility = Watts{102e3};
  power.levels.idle.facility = Watts{12e3};
  power.holdings = {.gpus = 96, .nodes = 12, .ports_100g = 0, .facility_peak = Watts{111e3}};
  power.facility.add(Seconds{1}, Watts{93e3});
  power.facility.add(Seconds{1}, Watts{111e3});
  power.facility_meter.high = Watts{106e3};
  power.site_peak = Watts{106e3};
  return power;
}

}  // namespace

TEST_CASE("node_draw: what a job and its reserve draw is shared out to who works and who waits") {
  const NodeDraw draw = node_draw(Watts{102e3}, ten_nodes_and_two(), 10);
  CHECK(draw.working.base_units() == doctest::Approx(10e3));
  CHECK(draw.idle.base_units() == doctest::Approx(1e3));
  // 5 work and 20 have no place in the job.
  CHECK(draw.of({.at = {}, .nodes = 25, .used = 5}).base_units() == doctest::Approx(70e3));
}

TEST_CASE("fleet_energy: each hour at its own tariff, for the share of the nodes that is own") {
  Fleet fleet = *test::a_quarter_at_first();  // all of them from half past ten
  fleet.begins = Seconds{8 * kHour};
  const NodeDraw draw{.working = Watts{10e3}, .idle = Watts{1e3}};
  CostSpec prices;
  prices.usd_per_kwh.values = {0.1, 0.2, 0.4};
  prices.grams_per_kwh = HourlySeries{.values = {100}};
  // Four hours from eight on: 2.5 of 25 nodes, 5 of them own, and 1.5 of 100 with 80.
  const FleetEnergy took = fleet_energy(fleet, draw, Seconds{4 * kHour}, prices);
  CHECK(took.energy.base_units() / kKwh == doctest::Approx(2.5 * 250 + 1.5 * 1000));
  CHECK(took.grams.value() == doctest::Approx(100 * (2.5 * 250 + 1.5 * 1000)));
  CHECK(took.usd() == doctest::Approx(50 * (0.1 + 0.2 + 0.5 * 0.4) + 800 * (0.5 * 0.4 + 0.1)));
  CHECK(took.paid.front().at == fleet.begins);
  // Of the 100, 20 are away on average: the others stand for 80 of the energy's shares.
  Fleet spot = fleet;
  spot.steps[1].used = 60;
  spot.steps[1].away = 20;
  const FleetEnergy there = fleet_energy(spot, draw, Seconds{4 * kHour}, prices);
  CHECK(there.energy.base_units() / kKwh == doctest::Approx(2.5 * 250 + 1.5 * (600 + 20)));
  CHECK(there.usd() == doctest::Approx(50 * (0.1 + 0.2 + 0.5 * 0.4) + 620 * (0.5 * 0.4 + 0.1)));
  // Rented machines have it in their price.
  for (FleetStep& step : fleet.steps) step.own = 0;
  const FleetEnergy rented = fleet_energy(fleet, draw, Seconds{4 * kHour}, prices);
  CHECK(rented.usd() == 0);
  CHECK(rented.energy == took.energy);
}

TEST_CASE("take_peak: a step's swing lies on the highest hour, as far as machines step then") {
  StepPower power = ten_nodes_and_two();
  take_peak({.level = Watts{150e3}, .busy = 0.5}, power);
  CHECK(power.site_peak.base_units() == doctest::Approx(152e3));
  CHECK(power.holdings.facility_peak.base_units() == doctest::Approx(154.5e3));
  CHECK(power.above(Watts{150e3}).base_units() == doctest::Approx(2e3));
  CHECK(power.facility_meter.high == Watts{106e3});  // of a step
}

}  // namespace lockstep
