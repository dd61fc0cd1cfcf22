#include "topologies/infiniband/link_rate.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <memory>

namespace lockstep {
namespace {

constexpr std::string_view kSpecification =
    "InfiniBand Architecture Specification 1.7, volume 2, signalling rates and line codes";

// SDR to QDR send 8 bits of data in 10; FDR 64 in 66; FDR10 too, at QDR's rate of data. Names from
// EDR on are of data rates, coding already taken off.
// Codes: LinkSpeedEnabled and LinkSpeedExtEnabled of PortInfo (volume 1, table 155).
constexpr std::array kLaneSpeeds{
    LaneSpeed{"SDR", 2, 1, 0, kSpecification},
    LaneSpeed{"DDR", 4, 2, 0, kSpecification},
    LaneSpeed{"QDR", 8, 4, 0, kSpecification},
    LaneSpeed{"FDR10", 10, 0, 0, kSpecification},
    LaneSpeed{"FDR", 14.0625 * 64 / 66, 0, 1, kSpecification},
    LaneSpeed{"EDR", 25, 0, 2, kSpecification},
    LaneSpeed{"HDR", 50, 0, 4, kSpecification},
    LaneSpeed{"NDR", 100, 0, 8, kSpecification},
    LaneSpeed{"XDR", 200, 0, 0, kSpecification},
};
// Codes: LinkWidthEnabled of PortInfo. Four lanes first: what links are made of.
constexpr std::array kLaneCounts{LaneCount{4, 2}, LaneCount{1, 1}, LaneCount{2, 0}, LaneCount{8, 4},
                                 LaneCount{12, 8}};
constexpr std::string_view kPlainUnit = "Gb/s";

struct Rate {
  const LaneCount* width;
  const LaneSpeed* speed;
};

BytesPerSecond capacity(const LaneCount& width, const LaneSpeed& speed) {
  return gigabits_per_second(width.lanes * speed.gigabits);
}

std::optional<Rate> named(BytesPerSecond rate) {
  for (const LaneCount& width : kLaneCounts) {
    for (const LaneSpeed& speed : kLaneSpeeds) {
      if (capacity(width, speed) == rate) return Rate{&width, &speed};
    }
  }
  return std::nullopt;
}

}  // namespace

std::span<const LaneSpeed> lane_speeds() { return kLaneSpeeds; }
std::span<const LaneCount> lane_counts() { return kLaneCounts; }

std::optional<BytesPerSecond> link_rate(std::string_view text) {
  double number = 0;
  const char* const end = std::to_address(text.end());
  const auto parsed = std::from_chars(std::to_address(text.begin()), end, number);
  if (parsed.ec != std::errc{} || !std::isfinite(number) || number <= 0) return std::nullopt;
  const std::string_view rest(parsed.ptr, static_cast<std::size_t>(end - parsed.ptr));
  if (rest == kPlainUnit && number >= 1e-6 && number <= 1e6) return gigabits_per_second(number);
  for (const LaneCount& width : kLaneCounts) {
    if (number != width.lanes || !rest.starts_with('x')) continue;
    for (const LaneSpeed& speed : kLaneSpeeds) {
      if (rest.substr(1) == speed.name) return capacity(width, speed);
    }
  }
  return std::nullopt;
}

std::string link_rate_name(BytesPerSecond rate) {
  const auto found = named(rate);
  if (!found) return fmt::format("{}{}", rate.base_units() * 8 / 1e9, kPlainUnit);
  return fmt::format("{}x{}", found->width->lanes, found->speed->name);
}

std::optional<BytesPerSecond> ibsim_rate(const IbsimCodes& codes) {
  const LaneCount* width = codes.width == 0 ? kLaneCounts.data() : nullptr;
  for (const LaneCount& lanes : kLaneCounts) {
    if ((codes.width & lanes.ibsim_code) == 0) continue;
    if (width == nullptr || width->lanes < lanes.lanes) width = &lanes;
  }
  const bool default_speed = codes.speed == 0 && codes.extended == 0;
  const LaneSpeed* speed = default_speed ? kLaneSpeeds.data() : nullptr;
  for (const LaneSpeed& lane : kLaneSpeeds) {
    const bool enabled =
        (codes.speed & lane.ibsim_code) != 0 || (codes.extended & lane.ibsim_extended) != 0;
    if (enabled) speed = &lane;
  }
  if (width == nullptr || speed == nullptr) return std::nullopt;
  return capacity(*width, *speed);
}

}  // namespace lockstep
