#include "sim/step/data_groups.hpp"

#include <algorithm>

namespace lockstep {
namespace {

DataGroup make_group(const Parallelism& cut, const Placement& placement, int stage, int replicas,
                     int stride, int context) {
  const RankGroup all = placement.group(ParallelAxis::data, {.pipeline = stage});
  const GroupSpread spread =
      placement.spread({.first = all.first, .count = replicas, .stride = all.stride * stride});
  const GroupSpread side_by_side =
      placement.spread({.first = all.first, .count = context, .stride = cut.tensor});
  return {.ranks = replicas * context,
          .per_domain = std::max(1, spread.per_domain_max) * side_by_side.per_domain_max,
          .replicas = replicas,
          .stride = stride,
          .replicas_per_domain = std::max(1, spread.per_domain_max),
          .crosses_domains = spread.domains > 1};
}

}  // namespace

DataGroups data_groups(const Parallelism& cut, const Placement& placement, int stage) {
  const int together = std::max(1, cut.shards() / cut.context);
  const bool hybrid = cut.sharding == Sharding::zero3 && cut.shards() < cut.replicas();
  const int shard = hybrid ? together : cut.data;
  return {make_group(cut, placement, stage, cut.data, 1, cut.context),
          make_group(cut, placement, stage, shard, 1, cut.context),
          make_group(cut, placement, stage, cut.data / shard, shard, 1)};
}

}  // namespace lockstep
