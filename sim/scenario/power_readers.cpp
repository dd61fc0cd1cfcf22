// Readers of what decides power: models/spec/specs.hpp.
#include <array>
#include <string_view>

#include "sim/scenario/declared_members.hpp"
#include "sim/scenario/spec_readers.hpp"

namespace lockstep {
namespace {

constexpr std::array<std::string_view, 3> kCoolingNames{"air", "liquid", "immersion"};
constexpr Interval kWatts{0, 1e5};
constexpr Interval kPicojoules{0, 1e4};
constexpr Interval kCelsius{-50, 60};

/// A member in picojoules per something.
template <class Energy>
void declare_picojoules(const DeclaredMembers& member, std::string_view key, Energy& out,
                        std::string_view sentence) {
  member.required(key, number_type(kPicojoules), sentence,
                  [&](const JsonCursor& at) { out = Energy{1e-12 * at.number(kPicojoules)}; });
}

}  // namespace

void declare_gpu_power(const DeclaredMembers& member, GpuPowerConstants& out) {
  member.required("awake", out.awake, kWatts, "A process holds the card, nothing runs");
  member.required("active", out.active, kWatts, "Kernels run, but compute and move nothing");
  declare_picojoules(member, "tensor_16_pj", out.tensor_16, "Picojoules per FLOP in 16 bit");
  declare_picojoules(member, "tensor_8_pj", out.tensor_8, "The same in fp8");
  declare_picojoules(member, "tensor_4_pj", out.tensor_4, "The same in fp4");
  declare_picojoules(member, "hbm_pj", out.hbm, "Picojoules per byte through HBM");
  declare_picojoules(member, "link_pj", out.link, "Picojoules per byte out of the GPU");
  member.optional("clock_exponent", out.clock_exponent, Interval{1, 5},
                  "Power above active goes as clock to this power");
  member.optional("lowest_clock", out.lowest_clock, Interval{0.05, 1}, "Over the sustained clock");
}

void declare_chassis(const DeclaredMembers& member, ChassisSpec& out) {
  member.optional("about", out.about, "What it is");
  member.required("cooling", out.cooling, kCoolingNames, "How heat leaves the box");
  member.required("cpus", out.cpus, 0, 64, "Of a node");
  member.required("cpu_idle", out.cpu_idle, kWatts, "Each, idle");
  member.required("cpu_busy", out.cpu_busy, kWatts, "Each, feeding a training job");
  member.required("memory", out.memory, kWatts, "All DIMMs");
  member.required("drives", out.drives, kWatts, "All of them");
  member.required("board", out.board, kWatts, "Baseboards, management, converters");
  member.required("nic", out.nic, kWatts, "Each");
  member.required("nvlink_switches", out.nvlink_switches, kWatts,
                  "Of the node, or its share of the rack's");
  member.required("fans", out.fans, kWatts, "Fans or pumps at the lowest speed");
  member.required("fan_share", out.fan_share, kShare,
                  "What they take beyond that, of the heat that they carry");
  member.required("supply_efficiency", out.supply_efficiency, Interval{0.5, 1}, "AC to DC");
  member.optional("nodes_per_rack", out.nodes_per_rack, 1, 1000, "For the power of a rack");
}

void declare_facility(const DeclaredMembers& member, FacilitySpec& out) {
  member.optional("about", out.about, "What it is");
  member.optional("pue", out.pue, Interval{1, 10}, "Facility over IT power, instead of the model");
  member.optional("distribution_loss", out.distribution_loss, kShare,
                  "Transformers, UPS and wiring, of IT power");
  member.optional("lighting", out.lighting, kShare, "Of IT power");
  member.optional("liquid_share", out.liquid_share, kShare,
                  "Of the heat, that water carries to dry coolers");
  member.optional("pump_share", out.pump_share, kShare,
                  "Pumps and dry coolers, of the heat that they carry");
  member.optional("air_handling", out.air_handling, kShare,
                  "Fans of the halls, of the heat in the air");
  member.optional("supply_celsius", out.supply_celsius, kCelsius, "Water that chills the air");
  member.optional("approach_kelvin", out.approach_kelvin, Interval{0, 60},
                  "Condenser above the air outside");
  member.optional("carnot_share", out.carnot_share, Interval{0.05, 1},
                  "Chillers, of the best possible coefficient of performance");
  member.optional("free_cooling_celsius", out.free_cooling_celsius, kCelsius,
                  "Outside air up to which no chiller runs");
  member.optional("racks_per_row", out.racks_per_row, 1, 1000,
                  "For the series of a row; default: 10");
  member.required("switch_per_100g", out.switch_per_100g, kWatts, "A switch port, per 100 Gb/s");
  member.required("optic_per_100g", out.optic_per_100g, kWatts, "Its optical plug, per 100 Gb/s");
}

}  // namespace lockstep
