#include "sim/step/data_groups.hpp"

#include <algorithm>
#include <compare>
#include <cstddef>
#include <utility>
#include <vector>

#include "models/base/shared_memo.hpp"
#include "sim/step/layer_groups.hpp"

namespace lockstep {
namespace {

/// A kind of group, in replicas and in the lanes of a replica.
struct DataGroupShape {
  int replicas, stride;    ///< members, and how far apart they are
  int lanes, lane_stride;  ///< members side by side in each replica
  int lanes_all;           ///< of a replica
  int replicas_all;        ///< of the job
};

/// All groups of the kind in one stage. Lanes of a group are `lane_stride` apart and groups begin
/// on the lanes between, replicas in the same way.
DataGroup make_group(const Placement& placement, int stage, const DataGroupShape& shape) {
  const RankGroup lane = placement.group(ParallelAxis::tensor, {.pipeline = stage});
  const RankGroup data = placement.group(ParallelAxis::data, {.pipeline = stage});
  const auto between = [](int members, int stride, int all) {
    // Groups on the places between members, and blocks of groups one after the other.
    const int inner = std::min(stride, all), outer = std::max(1, all / (members * inner));
    return std::pair{inner, outer};
  };
  const auto [lanes_inner, lanes_outer] = between(shape.lanes, shape.lane_stride, shape.lanes_all);
  const auto [data_inner, data_outer] = between(shape.replicas, shape.stride, shape.replicas_all);
  GroupFamily family{.first = data.first,
                     .members = {},
                     .repeats = {{lanes_inner, lane.stride},
                                 {lanes_outer, shape.lanes * lanes_inner * lane.stride},
                                 {data_inner, data.stride},
                                 {data_outer, shape.replicas * data_inner * data.stride}}};
  std::vector<int> replicas, members, beside;
  for (int l = 0; l < shape.lanes; ++l) beside.push_back(l * shape.lane_stride * lane.stride);
  for (int r = 0; r < shape.replicas; ++r) {
    replicas.push_back(r * shape.stride * data.stride);
    for (int l = 0; l < shape.lanes; ++l) {
      members.push_back(replicas.back() + l * shape.lane_stride * lane.stride);
    }
  }
  std::ranges::sort(members);
  family.members = std::move(members);
  const std::vector<GroupSpread> ways = placement.spreads(family);
  family.members = std::move(replicas);
  const std::vector<GroupSpread> apart = placement.spreads(family);
  family.members = std::move(beside);
  family.repeats.push_back({shape.replicas, shape.stride * data.stride});
  const std::vector<GroupSpread> of_replica =
      shape.lanes > 1 ? placement.spreads(family) : std::vector<GroupSpread>{};
  const auto most = [](const std::vector<GroupSpread>& of) {
    return std::ranges::max(of, {}, &GroupSpread::per_domain_max).per_domain_max;
  };
  const auto cross = [](const std::vector<GroupSpread>& of) {
    return std::ranges::any_of(of, [](const GroupSpread& way) { return way.domains > 1; });
  };
  return {.ranks = shape.replicas * shape.lanes,
          .lanes = shape.lanes,
          .lane_stride = shape.lane_stride,
          .spreads = domain_spreads(ways),
          .per_domain = most(ways),
          .replicas = shape.replicas,
          .stride = shape.stride,
          .replicas_per_domain = most(apart),
          .crosses_domains = cross(ways),
          .lanes_cross_domains = cross(of_replica)};
}

/// All that the groups of a stage depend on.
struct GroupsKey {
  PlacementSpec placement;
  int stage;
  int tensor, context, data, expert, expert_tensor;
  int shards, replicas;
  bool splits_weights;  ///< ZeRO-3

  friend auto operator<=>(const GroupsKey&, const GroupsKey&) = default;
};

DataGroups make_groups(const GroupsKey& cut, const Placement& placement) {
  const int together = std::max(1, cut.shards / cut.context);
  const bool hybrid = cut.splits_weights && cut.shards < cut.replicas;
  const int shard = hybrid ? together : cut.data;
  // Expert-parallel groups fill ranks in order: tensor, context, then data.
  const int lanes = cut.tensor * cut.context, spread = cut.expert * cut.expert_tensor;
  const int span = std::max(1, spread / lanes);  // replicas that hold all experts together
  const auto group = [&](int replicas, int stride, int beside, int lane_stride) {
    return make_group(placement, cut.stage,
                      {.replicas = replicas,
                       .stride = stride,
                       .lanes = beside,
                       .lane_stride = lane_stride,
                       .lanes_all = lanes,
                       .replicas_all = cut.data});
  };
  return {group(cut.data, 1, cut.context, cut.tensor), group(shard, 1, cut.context, cut.tensor),
          group(cut.data / shard, shard, 1, lanes),
          group(std::max(1, cut.data / span), span, std::max(1, lanes / spread), spread)};
}

std::size_t bytes_of_groups(const GroupsKey& /*key*/, const DataGroups& groups) {
  std::size_t bytes = sizeof(GroupsKey) + sizeof(DataGroups);
  for (const DataGroup& group : groups) {
    bytes += group.spreads.ways().capacity() * sizeof(DomainSpread);
  }
  return bytes;
}

/// Of the jobs of a sweep or a search, which are cut in a few hundred ways.
SharedMemo<GroupsKey, DataGroups>& known_groups() {
  constexpr std::size_t kMostBytes = std::size_t{4} << 20U;
  static SharedMemo<GroupsKey, DataGroups> known(kMostBytes, bytes_of_groups);
  return known;
}

}  // namespace

DataGroups data_groups(const Parallelism& cut, const Placement& placement, int stage) {
  const GroupsKey key{.placement = placement.spec(),
                      .stage = stage,
                      .tensor = cut.tensor,
                      .context = cut.context,
                      .data = cut.data,
                      .expert = cut.expert,
                      .expert_tensor = cut.expert_tensor,
                      .shards = cut.shards(),
                      .replicas = cut.replicas(),
                      .splits_weights = cut.sharding == Sharding::zero3};
  return *known_groups().get(key, [&] { return make_groups(key, placement); });
}

}  // namespace lockstep
