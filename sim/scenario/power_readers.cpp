// Readers of what decides power: models/spec/specs.hpp.
#include <array>
#include <string_view>

#include "sim/scenario/member_reader.hpp"
#include "sim/scenario/spec_readers.hpp"

namespace lockstep {
namespace {

constexpr std::array<std::string_view, 3> kCoolingNames{"air", "liquid", "immersion"};
constexpr Interval kWatts{0, 1e5};
constexpr Interval kPicojoules{0, 1e4};
constexpr Interval kCelsius{-50, 60};

/// A member in picojoules per something.
template <class Energy>
void read_picojoules(const MemberReader& member, std::string_view key, Energy& out) {
  member.required(key, [&](const JsonCursor& at) { out = Energy{1e-12 * at.number(kPicojoules)}; });
}

}  // namespace

void read_gpu_power(const JsonCursor& from, Extent extent, GpuPowerConstants& out) {
  const MemberReader member(from, extent);
  member.required("awake", out.awake, kWatts);
  member.required("active", out.active, kWatts);
  read_picojoules(member, "tensor_16_pj", out.tensor_16);
  read_picojoules(member, "tensor_8_pj", out.tensor_8);
  read_picojoules(member, "tensor_4_pj", out.tensor_4);
  read_picojoules(member, "hbm_pj", out.hbm);
  read_picojoules(member, "link_pj", out.link);
  member.optional("clock_exponent", out.clock_exponent, Interval{1, 5});
  member.optional("lowest_clock", out.lowest_clock, Interval{0.05, 1});
  from.finish();
}

void read_chassis(const JsonCursor& from, Extent extent, ChassisSpec& out) {
  const MemberReader member(from, extent);
  member.optional("about", out.about);
  member.required("cooling", [&](const JsonCursor& at) {
    out.cooling = read_choice<Cooling>(at, kCoolingNames);
  });
  member.required("cpus", out.cpus, 0, 64);
  member.required("cpu_idle", out.cpu_idle, kWatts);
  member.required("cpu_busy", out.cpu_busy, kWatts);
  member.required("memory", out.memory, kWatts);
  member.required("drives", out.drives, kWatts);
  member.required("board", out.board, kWatts);
  member.required("nic", out.nic, kWatts);
  member.required("nvlink_switches", out.nvlink_switches, kWatts);
  member.required("fans", out.fans, kWatts);
  member.required("fan_share", out.fan_share, kShare);
  member.required("supply_efficiency", out.supply_efficiency, Interval{0.5, 1});
  member.optional("nodes_per_rack", out.nodes_per_rack, 1, 1000);
}

void read_facility(const JsonCursor& from, Extent extent, FacilitySpec& out) {
  const MemberReader member(from, extent);
  member.optional("about", out.about);
  member.optional("pue", [&](const JsonCursor& at) { out.pue = at.number(Interval{1, 10}); });
  member.optional("distribution_loss", out.distribution_loss, kShare);
  member.optional("lighting", out.lighting, kShare);
  member.optional("liquid_share", out.liquid_share, kShare);
  member.optional("pump_share", out.pump_share, kShare);
  member.optional("air_handling", out.air_handling, kShare);
  member.optional("supply_celsius", out.supply_celsius, kCelsius);
  member.optional("approach_kelvin", out.approach_kelvin, Interval{0, 60});
  member.optional("carnot_share", out.carnot_share, Interval{0.05, 1});
  member.optional("free_cooling_celsius", out.free_cooling_celsius, kCelsius);
  member.optional("racks_per_row", out.racks_per_row, 1, 1000);
  member.required("switch_per_100g", out.switch_per_100g, kWatts);
  member.required("optic_per_100g", out.optic_per_100g, kWatts);
}

}  // namespace lockstep
