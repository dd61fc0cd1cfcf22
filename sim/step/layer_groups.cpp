#include "sim/step/layer_groups.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace lockstep {
namespace {

/// Distances between ranks that are neighbours along an axis.
struct RankStrides {
  explicit RankStrides(const Placement& placement)
      : lane(placement.group(ParallelAxis::tensor, {}).stride),
        data(placement.group(ParallelAxis::data, {}).stride),
        stage(placement.group(ParallelAxis::pipeline, {}).stride) {}
  int lane, data, stage;
};

/// Members first, first + step, ... of a stage's ranks, of which `lanes` are in each replica.
std::vector<int> members_of(const RankStrides& strides, int lanes, int first, int count, int step) {
  std::vector<int> members(static_cast<std::size_t>(count));
  for (int m = 0; m < count; ++m) {
    const int index = first + m * step;
    members[static_cast<std::size_t>(m)] =
        index % lanes * strides.lane + index / lanes * strides.data;
  }
  std::ranges::sort(members);
  return members;
}

void add_ways(const std::vector<GroupSpread>& more, std::vector<GroupSpread>& ways) {
  for (const GroupSpread& way : more) {
    if (std::ranges::find(ways, way) == ways.end()) ways.push_back(way);
  }
}

}  // namespace

DomainSpreads domain_spreads(const std::vector<GroupSpread>& ways) {
  std::vector<DomainSpread> out;
  for (const GroupSpread& way : ways) {
    const DomainSpread spread{way.per_domain_min, way.domains, way.per_domain_max};
    if (std::ranges::find(out, spread) == out.end()) out.push_back(spread);
  }
  return DomainSpreads{std::move(out)};
}

LayerGroups layer_groups(const Parallelism& par, const Placement& placement) {
  const RankStrides strides{placement};
  const int lanes = par.tensor * par.context;
  const auto ways = [&](std::vector<int> members, std::vector<GroupFamily::Repeat> repeats) {
    repeats.push_back({par.pipeline, strides.stage});
    return placement.spreads({0, std::move(members), std::move(repeats)});
  };
  LayerGroups out;
  out.tensor =
      domain_spreads(ways(members_of(strides, lanes, 0, par.tensor, 1),
                          {{par.context, par.tensor * strides.lane}, {par.data, strides.data}}));
  out.context = domain_spreads(ways(members_of(strides, lanes, 0, par.context, par.tensor),
                                    {{par.tensor, strides.lane}, {par.data, strides.data}}));
  if (par.expert * par.expert_tensor == 1) return out;

  // A block holds all experts once: a part of a replica's ranks, or several replicas.
  const int block = par.expert * par.expert_tensor;
  const int span = std::max(1, block / lanes);
  const std::vector<GroupFamily::Repeat> blocks{{std::max(1, lanes / block), block * strides.lane},
                                                {par.data / span, span * strides.data}};
  std::vector<GroupSpread> expert, shard;
  for (int e = 0; e < par.expert_tensor; ++e) {
    add_ways(ways(members_of(strides, lanes, e, par.expert, par.expert_tensor), blocks), expert);
  }
  for (int e = 0; e < par.expert && par.expert_tensor > 1; ++e) {
    const int first = e * par.expert_tensor;
    add_ways(ways(members_of(strides, lanes, first, par.expert_tensor, 1), blocks), shard);
  }
  out.expert = domain_spreads(expert);
  if (!shard.empty()) out.expert_shard = domain_spreads(shard);
  return out;
}

}  // namespace lockstep
