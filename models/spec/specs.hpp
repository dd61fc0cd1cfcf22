/// What decides the power of a GPU, a server and a site, as plain numbers read from presets
/// (models/presets/gpus, topologies/presets/chassis, topologies/presets/facilities).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "models/base/units.hpp"

namespace lockstep {

using JoulesPerFlop = Quantity<0, 0, -1, 1>;
using JoulesPerByte = Quantity<0, -1, 0, 1>;

constexpr JoulesPerFlop picojoules_per_flop(double n) { return JoulesPerFlop{n * 1e-12}; }
constexpr JoulesPerByte picojoules_per_byte(double n) { return JoulesPerByte{n * 1e-12}; }

/// Constants of models/power/gpu_power.hpp. Energies hold at the clock that the card sustains at
/// its limit.
struct GpuPowerConstants {
  Watts awake;              ///< a process holds the card, clocks are up, nothing runs
  Watts active;             ///< kernels run but move and compute nothing: waiting in a collective
  JoulesPerFlop tensor_16;  ///< matrix products and attention in fp16 and bf16
  JoulesPerFlop tensor_8;   ///< fp8, mxfp8
  JoulesPerFlop tensor_4;   ///< nvfp4
  JoulesPerByte hbm;
  JoulesPerByte link;         ///< out of the GPU, over NVLink or the NIC
  double clock_exponent = 3;  ///< n: power above `active` goes as clock^n
  double lowest_clock = 0.2;  ///< over the sustained clock
};

enum class Cooling : std::uint8_t { air, liquid, immersion };

/// A server around its GPUs; watts behind the power supply (DC).
struct ChassisSpec {
  std::string name, about;
  Cooling cooling = Cooling::air;
  int cpus = 2;
  Watts cpu_idle, cpu_busy;         ///< each; busy: feeding a training job
  Watts memory, drives;             ///< all of them
  Watts board;                      ///< baseboards, management, converters
  Watts nic;                        ///< each, with its cable's plug
  Watts nvlink_switches;            ///< of the node, or its share of the rack's
  Watts fans;                       ///< or pumps: at the lowest speed
  double fan_share = 0;             ///< of the heat that they carry away, beyond that
  double supply_efficiency = 0.95;  ///< AC to DC
  int nodes_per_rack = 4;
};

/// A site around its machines.
struct FacilitySpec {
  std::string name, about;
  std::optional<double> pue;     ///< facility over IT power; empty: by the model below
  double distribution_loss = 0;  ///< transformers, UPS and wiring, of IT power
  double lighting = 0;           ///< offices, lighting, security, of IT power
  double liquid_share = 0;       ///< of the heat, that water carries from the chips to dry coolers
  double pump_share = 0;         ///< pumps and dry coolers, of the heat that they carry
  double air_handling = 0;       ///< fans of the halls, of the heat in the air
  double supply_celsius = 20;    ///< water that chills the air
  double approach_kelvin = 15;   ///< condenser above the air outside
  double carnot_share = 0.4;     ///< chillers: of the best possible coefficient of performance
  double free_cooling_celsius = 5;  ///< outside air up to which no chiller runs
  int racks_per_row = 10;
  Watts switch_per_100g;  ///< switch silicon, per port and 100 Gb/s
  Watts optic_per_100g;   ///< a plug of an optical cable, per 100 Gb/s
};

}  // namespace lockstep
