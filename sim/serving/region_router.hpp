/// Which region a request goes to, and how long it is on its way.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sim/scenario/serving_spec.hpp"

namespace lockstep {

/// Regions and users, as a service needs them.
struct RegionPlan {
  std::vector<std::uint32_t> first{};  ///< replica of each region, and one past the last of all
  struct Users {
    std::vector<std::uint32_t> order{};          ///< regions, the one to go to first
    std::vector<std::optional<RunTime>> away{};  ///< by region: there and back
  };
  std::vector<Users> users{};  ///< by population
  std::uint32_t spill = 0;     ///< requests of a region's least loaded replica: the next one, then

  [[nodiscard]] bool any() const { return !first.empty(); }
  [[nodiscard]] std::size_t size() const { return first.empty() ? 0 : first.size() - 1; }
  [[nodiscard]] std::size_t region_of(std::uint32_t replica) const;
  /// One way between the users of a request and the replica that has it; 0 without regions.
  [[nodiscard]] RunTime one_way(const ServedRequest& request) const;
  /// The replicas of `up` in the region that a request goes to: the first in its users' order with
  /// a replica that has fewer than `spill` requests, else the one whose least loaded replica has
  /// the fewest. Empty: none of its regions has a replica that is up.
  [[nodiscard]] std::span<const std::uint32_t> choose(const ServedRequest& request,
                                                      std::span<const std::uint32_t> up,
                                                      std::span<const std::uint32_t> loads) const;
};

/// Nothing where the service is in one place.
RegionPlan region_plan(const ServingSpec& spec);

}  // namespace lockstep
