#include "models/power/site_power.hpp"

#include <doctest/doctest.h>

#include "sim/scenario/preset_store.hpp"

namespace lockstep {
namespace {

NodeSpec round_node() {
  NodeSpec node;
  node.gpus = 8;
  node.nics = 4;
  node.gpu.power_idle = Watts{50};
  node.chassis = ChassisSpec{.name = "round",
                             .about = "",
                             .cooling = Cooling::air,
                             .cpus = 2,
                             .cpu_idle = Watts{50},
                             .cpu_busy = Watts{100},
                             .memory = Watts{100},
                             .drives = Watts{50},
                             .board = Watts{150},
                             .nic = Watts{25},
                             .nvlink_switches = Watts{100},
                             .fans = Watts{100},
                             .fan_share = 0.1,
                             .supply_efficiency = 0.8};
  return node;
}

}  // namespace

TEST_CASE("node_power: the box, fans by the heat, the supply by all of it") {
  const NodePower busy = node_power(round_node(), Watts{4300}, true);
  CHECK(busy.fans.base_units() == doctest::Approx(100 + 0.1 * 5000));
  CHECK(busy.dc().base_units() == doctest::Approx(5600));
  CHECK(busy.supply.base_units() == doctest::Approx(1400));
  CHECK(busy.ac().base_units() == doctest::Approx(7000));
  const NodePower idle = idle_node_power(round_node());
  CHECK(idle.gpus.base_units() == 400);
  CHECK(idle.dc().base_units() == doctest::Approx(1000 + 100 + 100));
}

TEST_CASE("fabric_power: by the rate of all ports") {
  FacilitySpec f;
  f.switch_per_100g = Watts{3};
  f.optic_per_100g = Watts{2};
  const FabricPower p = fabric_power(f, gigabits_per_second(64 * 400));
  CHECK(p.switches.base_units() == doctest::Approx(64 * 12));
  CHECK(p.optics.base_units() == doctest::Approx(64 * 8));
  CHECK(fabric_power(f, BytesPerSecond{}).total() == Watts{});
}

TEST_CASE("power_usage_effectiveness: a given one, free cooling, and Carnot's share") {
  FacilitySpec f;
  f.pue = 1.3;
  CHECK(power_usage_effectiveness(f, 40) == 1.3);
  f.pue.reset();
  f.distribution_loss = 0.05;
  f.lighting = 0.01;
  f.air_handling = 0.1;
  f.supply_celsius = 20;
  f.approach_kelvin = 10;
  f.carnot_share = 0.5;
  f.free_cooling_celsius = 5;
  CHECK(power_usage_effectiveness(f, 0) == doctest::Approx(1.16));
  // Lift of 25 K from 293.15 K: a COP of 0.5 x 11.726.
  CHECK(power_usage_effectiveness(f, 35) == doctest::Approx(1.16 + 25 / (0.5 * 293.15)));
  f.liquid_share = 1;
  f.pump_share = 0.03;
  CHECK(power_usage_effectiveness(f, 35) == doctest::Approx(1.09));
}

TEST_CASE("facility presets: never below 1, never cheaper in the heat, water below air") {
  const PresetStore presets;
  for (const std::string& name : presets.names("facilities")) {
    CAPTURE(name);
    double before = 1;
    for (int celsius = -20; celsius <= 45; celsius += 5) {
      const double pue = power_usage_effectiveness(presets.facility(name), celsius);
      CHECK(pue >= before);
      before = pue;
    }
    CHECK(before < 1.8);
  }
  CHECK(power_usage_effectiveness(presets.facility("liquid"), 25) <
        power_usage_effectiveness(presets.facility("air_chiller"), 25));
}

TEST_CASE("nodes_under: the count that a limit was made of, and one less below it") {
  const Watts node{1.2 * 10'500};
  CHECK(nodes_under(77 * node, node) == 77);
  CHECK(nodes_under(77 * node - Watts{10}, node) == 76);
  CHECK(nodes_under(Watts{1}, node) == 0);
}

}  // namespace lockstep
