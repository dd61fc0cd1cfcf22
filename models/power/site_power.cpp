#include "models/power/site_power.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

namespace lockstep {
namespace {

constexpr double kKelvin = 273.15;
constexpr BytesPerSecond k100g = gigabits_per_second(100);

/// How much of the chilling the chillers do at this temperature, 0 to 1; the air outside does the
/// rest.
double chiller_share(const FacilitySpec& f, double outside) {
  const double full = std::max(f.supply_celsius, f.free_cooling_celsius + 1);
  return std::clamp((outside - f.free_cooling_celsius) / (full - f.free_cooling_celsius), 0.0, 1.0);
}

}  // namespace

NodePower node_power(const NodeSpec& node, Watts gpus, bool busy) {
  assert(node.chassis);
  const ChassisSpec& c = *node.chassis;
  NodePower p{.gpus = gpus,
              .cpus = static_cast<double>(c.cpus) * (busy ? c.cpu_busy : c.cpu_idle),
              .memory = c.memory,
              .drives = c.drives,
              .board = c.board,
              .nics = static_cast<double>(node.nics) * c.nic,
              .nvlink_switches = c.nvlink_switches,
              .fans = {},
              .supply = {}};
  p.fans = c.fans + c.fan_share * p.dc();
  p.supply = (1 / c.supply_efficiency - 1) * p.dc();
  return p;
}

NodePower idle_node_power(const NodeSpec& node) {
  return node_power(node, static_cast<double>(node.gpus) * node.gpu.power_idle, false);
}

FabricPower fabric_power(const FacilitySpec& facility, BytesPerSecond ports) {
  const double hundreds = ports / k100g;
  return {.switches = hundreds * facility.switch_per_100g,
          .optics = hundreds * facility.optic_per_100g};
}

double power_usage_effectiveness(const FacilitySpec& f, double outside_celsius) {
  if (f.pue) return *f.pue;
  const double cold = f.supply_celsius + kKelvin;
  const double lift = std::max(5.0, outside_celsius + f.approach_kelvin - f.supply_celsius);
  const double chilling = chiller_share(f, outside_celsius) / (f.carnot_share * cold / lift);
  return 1 + f.distribution_loss + f.lighting + f.liquid_share * f.pump_share +
         (1 - f.liquid_share) * (f.air_handling + chilling);
}

int nodes_under(Watts limit, Watts facility_per_node) {
  if (facility_per_node <= Watts{}) return std::numeric_limits<int>::max();
  // Half a watt of slack, so that a limit that was computed from a count gives that count.
  return static_cast<int>(std::min(2e9, std::floor((limit + Watts{0.5}) / facility_per_node)));
}

}  // namespace lockstep
