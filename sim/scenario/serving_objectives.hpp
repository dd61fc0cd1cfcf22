/// What is asked of a service.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "models/base/units.hpp"
#include "sim/scenario/declared_members.hpp"

namespace lockstep {

/// What is measured of a request, or between its tokens.
enum class ServedTime : std::uint8_t { ttft, tpot, itl, e2e };
constexpr std::array<std::string_view, 4> kServedTimeNames{"ttft", "tpot", "itl", "e2e"};
/// Percents of all that a limit can be about.
constexpr std::array<int, 3> kLimitedPercents{50, 90, 99};
constexpr std::size_t kServedLimits = kServedTimeNames.size() * kLimitedPercents.size();

/// What is asked of a service; nothing by default.
struct ServingObjectives {
  std::optional<Seconds> ttft{}, tpot{}, e2e{};  ///< that a request must keep to count
  double attained = 0.99;                        ///< share of the requests that must keep these
  /// Of all requests: by time, then by percent.
  std::array<std::optional<Seconds>, kServedLimits> quantiles{};

  [[nodiscard]] bool per_request() const { return ttft || tpot || e2e; }
  [[nodiscard]] bool any() const {
    return per_request() || std::ranges::any_of(quantiles, [](const auto& q) { return !!q; });
  }
};

/// Declares what a request must keep, and how many must.
void declare_request_limits(const DeclaredMembers& member, ServingObjectives& out);
/// Declares these, and what quantiles of all must not be above.
void declare_objectives(const DeclaredMembers& member, ServingObjectives& out);

}  // namespace lockstep
