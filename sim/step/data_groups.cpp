#include "sim/step/data_groups.hpp"

#include <algorithm>

namespace lockstep {
namespace {

/// `lanes` members side by side in each replica, `lane_stride` apart.
DataGroup make_group(const Placement& placement, int stage, int replicas, int stride, int lanes,
                     int lane_stride) {
  const RankGroup all = placement.group(ParallelAxis::data, {.pipeline = stage});
  const GroupSpread spread =
      placement.spread({.first = all.first, .count = replicas, .stride = all.stride * stride});
  const GroupSpread side_by_side =
      placement.spread({.first = all.first, .count = lanes, .stride = lane_stride});
  return {.ranks = replicas * lanes,
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
  // Expert-parallel groups fill ranks in order: tensor, context, then data.
  const int lanes = cut.tensor * cut.context, spread = cut.expert * cut.expert_tensor;
  const int span = std::max(1, spread / lanes);  // replicas that hold all experts together
  return {make_group(placement, stage, cut.data, 1, cut.context, cut.tensor),
          make_group(placement, stage, shard, 1, cut.context, cut.tensor),
          make_group(placement, stage, cut.data / shard, shard, 1, 1),
          make_group(placement, stage, std::max(1, cut.data / span), span,
                     std::max(1, lanes / spread), spread)};
}

}  // namespace lockstep
