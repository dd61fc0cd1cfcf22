#include "sim/serving/kv_links.hpp"

#include <algorithm>

namespace lockstep {
namespace {

constexpr std::size_t kMostServingLinks = 8;
// The clock holds 213 days from the first request. The load may take this much of it; the rest is
// for requests that still run after the last arrival.
constexpr Seconds kLongestLoad{1.5e7};

}  // namespace

bool clock_holds(std::span<const ServedRequest> requests) {
  return std::ranges::all_of(requests, [](const ServedRequest& r) {
    return to_seconds(r.arrival) <= kLongestLoad && to_seconds(r.think) <= kLongestLoad;
  });
}

std::vector<ServingLink> fullest_links(FabricLinks& links, Seconds span) {
  std::vector<ServingLink> out;
  const Fabric& fabric = links.fabric();
  const std::vector<LinkIndex>& known = links.known();
  for (FabricLink l = 0; l < known.size() && span > Seconds{}; ++l) {
    if (known[l] == FabricLinks::kNoLink || fabric.joins_nic(l)) continue;
    const Bytes carried = links.network().carried(known[l]);
    if (carried <= Bytes{}) continue;
    const BytesPerSecond capacity = links.network().capacity(known[l]);
    out.push_back({.name = fabric.link_name(l),
                   .capacity_bytes_per_s = capacity.base_units(),
                   .bytes = carried.base_units(),
                   .share = carried / (span * capacity)});
  }
  const auto fuller = [](const ServingLink& a, const ServingLink& b) { return a.share > b.share; };
  std::ranges::stable_sort(out, fuller);
  if (out.size() > kMostServingLinks) out.resize(kMostServingLinks);
  return out;
}

}  // namespace lockstep
