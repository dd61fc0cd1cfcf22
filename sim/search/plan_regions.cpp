#include "sim/search/plan_regions.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace lockstep {

Seconds transfer_time(const WideAreaLink& link, Bytes bytes) {
  if (bytes <= Bytes{}) return {};
  return link.latency + bytes / link.bandwidth;
}

double transfer_usd(const WideAreaLink& link, Bytes bytes) {
  constexpr double kGigabyte = 1e9;
  return bytes.base_units() / kGigabyte * link.usd_per_gb;
}

WideAreaLink link_between(const PlanRegion& from, const PlanRegion& to) {
  assert(from.bandwidth && to.bandwidth && from.egress_usd_per_gb);
  return {.latency = from.latency + to.latency,
          .bandwidth = std::min(*from.bandwidth, *to.bandwidth),
          .usd_per_gb = *from.egress_usd_per_gb};
}

bool PlanData::may_be_in(std::size_t region) const {
  const auto has = [&](const std::vector<std::size_t>& regions) {
    return std::ranges::find(regions, region) != regions.end();
  };
  return !may_go || has(in) || has(*may_go);
}

PlanPlace place_in(const std::vector<PlanRegion>& regions, const PlanData& data,
                   std::size_t region) {
  PlanPlace out;
  out.region = region;
  out.name = regions[region].name;
  if (data.checkpoints_to && *data.checkpoints_to != region) {
    const PlanRegion& to = regions[*data.checkpoints_to];
    out.copies_to = to.name;
    out.copies_way = link_between(regions[region], to);
    out.copies_every = data.checkpoints_every;
  }
  if (std::ranges::find(data.in, region) != data.in.end()) return out;
  for (const std::size_t from : data.in) {
    const WideAreaLink way = link_between(regions[from], regions[region]);
    const Seconds takes = transfer_time(way, data.bytes);
    const double usd = transfer_usd(way, data.bytes);
    const bool better = takes < out.data_takes || (takes == out.data_takes && usd < out.data_usd);
    if (!out.data_from.empty() && !better) continue;
    out.data_from = regions[from].name;
    out.data_takes = takes;
    out.data_usd = usd;
  }
  return out;
}

PlanMoves moves_of(const PlanPlace& place, Bytes checkpoint, Seconds run) {
  PlanMoves out{.before = place.data_takes, .after = {}, .data_usd = place.data_usd};
  if (place.copies_to.empty()) return out;
  out.after = transfer_time(place.copies_way, checkpoint);
  out.copies = 1;
  if (place.copies_every) {
    out.copies += std::floor(run / std::max(*place.copies_every, out.after));
  }
  out.copies_usd = out.copies * transfer_usd(place.copies_way, checkpoint);
  return out;
}

}  // namespace lockstep
