#include "sim/serving/region_router.hpp"

#include <algorithm>
#include <cassert>

namespace lockstep {

std::size_t RegionPlan::region_of(std::uint32_t replica) const {
  return static_cast<std::size_t>(std::ranges::upper_bound(first, replica) - first.begin()) - 1;
}

RunTime RegionPlan::one_way(const ServedRequest& request) const {
  if (!any() || request.replica < 0) return 0;
  const std::size_t region = region_of(static_cast<std::uint32_t>(request.replica));
  return *users[static_cast<std::size_t>(request.population)].away[region] / 2;
}

std::span<const std::uint32_t> RegionPlan::choose(const ServedRequest& request,
                                                  std::span<const std::uint32_t> up,
                                                  std::span<const std::uint32_t> loads) const {
  std::span<const std::uint32_t> best;
  std::uint32_t fewest = UINT32_MAX;
  for (const std::uint32_t region : users[static_cast<std::size_t>(request.population)].order) {
    const auto begin = std::ranges::lower_bound(up, first[region]);
    const auto end = std::ranges::lower_bound(up, first[region + 1]);
    if (begin == end) continue;
    const std::span<const std::uint32_t> here(begin, end);
    const std::uint32_t least =
        loads[*std::ranges::min_element(here, {}, [&](std::uint32_t r) { return loads[r]; })];
    if (least < spill) return here;
    if (least >= fewest) continue;
    fewest = least;
    best = here;
  }
  return best;
}

RegionPlan region_plan(const ServingSpec& spec) {
  RegionPlan out;
  if (spec.regions.all.empty()) return out;
  out.first.push_back(0);
  for (const ServingRegion& region : spec.regions.all) {
    out.first.push_back(out.first.back() + static_cast<std::uint32_t>(region.replicas));
  }
  for (const ServingPopulation& of : spec.populations) {
    out.users.push_back({region_order(spec, of), of.away});
  }
  out.spill = static_cast<std::uint32_t>(spec.regions.spill);
  return out;
}

}  // namespace lockstep
