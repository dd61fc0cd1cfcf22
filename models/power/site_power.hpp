/// The power of a node, of the fabric and of the site around them.
#pragma once

#include "models/base/units.hpp"
#include "models/spec/hardware.hpp"
#include "models/spec/specs.hpp"

namespace lockstep {

/// A node by part. All but `supply` is behind the power supply.
struct NodePower {
  Watts gpus, cpus, memory, drives, board, nics, nvlink_switches, fans;
  Watts supply;  ///< lost from AC to DC

  [[nodiscard]] Watts dc() const {
    return gpus + cpus + memory + drives + board + nics + nvlink_switches + fans;
  }
  [[nodiscard]] Watts ac() const { return dc() + supply; }
};

/// A node whose GPUs draw `gpus` together: everything in the box, then fans or pumps, which take
/// their share of the heat they carry, then the supply: AC = DC / efficiency. Requires
/// node.chassis.
NodePower node_power(const NodeSpec& node, Watts gpus, bool busy);
/// Nobody's: cards and CPUs idle.
NodePower idle_node_power(const NodeSpec& node);

/// Switches and optics. A switch port draws as its rate, with an optical plug in it; the plug at a
/// NIC counts as the NIC's.
struct FabricPower {
  Watts switches, optics;
  [[nodiscard]] Watts total() const { return switches + optics; }
};
/// `ports`: the rates of all switch ports together, one direction.
FabricPower fabric_power(const FacilitySpec& facility, BytesPerSecond ports);

/// Facility over IT power at an outside temperature. By the model:
///
///     PUE = 1 + distribution + lighting + liquid pumps + air (handling + 1 / COP)
///     COP = carnot_share Tc / (Th - Tc),   Tc = supply, Th = outside + approach, in kelvin
///
/// where `liquid` and `air` are the shares of the heat that each carries. Chillers stand still up
/// to free_cooling_celsius and take over linearly until the supply temperature. Source of the
/// form: ASHRAE Handbook, HVAC Systems and Equipment, chapter 43 (COP as a share of Carnot's);
/// coefficients are the preset's.
double power_usage_effectiveness(const FacilitySpec& facility, double outside_celsius);

/// Nodes whose facility power stays under `limit` when each adds so much of it: itself, its share
/// of switches and optics, and what cools and feeds them.
int nodes_under(Watts limit, Watts facility_per_node);

}  // namespace lockstep
