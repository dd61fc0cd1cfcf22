/// The groups in which replicas exchange gradients and weights.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "models/collectives/group_spread.hpp"
#include "models/spec/transformer.hpp"
#include "topologies/fabrics/placement.hpp"

namespace lockstep {

enum class DataGroupKind : std::uint8_t {
  replicas,  ///< all ranks that hold the same weights
  shard,     ///< those that hold one copy of them together (HSDP)
  copies,    ///< those that hold the same part of each copy
  experts,   ///< those that hold the same experts
};
constexpr std::size_t kDataGroups = 4;

/// Context-parallel ranks of one replica are members side by side, on lanes of the same actor, and
/// so may be ranks with the same experts; among replicas a group is base, base + stride, ... of
/// them.
struct DataGroup {
  int ranks = 1;                     ///< members, those side by side counted
  int lanes = 1;                     ///< members side by side in each replica,
  int lane_stride = 1;               ///< and how far apart they are, in lanes
  DomainSpreads spreads{};           ///< how the stage's groups lie over NVLink domains
  int per_domain = 1;                ///< most members of a group in one NVLink domain
  int replicas = 1;                  ///< data-parallel replicas among the members
  int stride = 1;                    ///< between neighbours, in replicas
  int replicas_per_domain = 1;       ///< most of a group
  bool crosses_domains = false;      ///< members of a group do
  bool lanes_cross_domains = false;  ///< those side by side in one replica do

  [[nodiscard]] int group_of(int replica) const {
    return replica / (replicas * stride) * stride + replica % stride;
  }
  /// The replicas of a group, ascending with `index`.
  [[nodiscard]] int member(int group, int index) const {
    return group / stride * (replicas * stride) + group % stride + index * stride;
  }
  /// The replica to which `replica` sends in the ring between NVLink domains: its like in the next.
  [[nodiscard]] int next(int replica) const {
    const int index = replica / stride % replicas;
    return replica + ((index + replicas_per_domain) % replicas - index) * stride;
  }
};

constexpr int kEveryGroup = -1;

/// Calls `visit` with the ranks of each group of the kind in a stage, or of those alone whose
/// replicas are in group `which`. Lanes of a replica are its tensor ranks as `placement` numbers
/// them; it was made from `spec`.
template <class Visit>
void for_each_group(const DataGroup& group, const PlacementSpec& spec, const Placement& placement,
                    int stage, int which, Visit&& visit) {
  const auto for_each_first = [](int members, int stride, int all, auto&& begin) {
    const int inner = std::min(stride, all);
    for (int block = 0; block + (members - 1) * stride < all; block += members * inner) {
      for (int first = block; first < block + inner; ++first) begin(first);
    }
  };
  std::vector<int> ranks;
  for_each_first(group.replicas, group.stride, spec.data, [&](int replica) {
    if (which != kEveryGroup && group.group_of(replica) != which) return;
    for_each_first(group.lanes, group.lane_stride, spec.tensor, [&](int lane) {
      ranks.clear();
      for (int r = 0; r < group.replicas; ++r) {
        for (int l = 0; l < group.lanes; ++l) {
          ranks.push_back(placement.rank({.tensor = lane + l * group.lane_stride,
                                          .data = replica + r * group.stride,
                                          .pipeline = stage}));
        }
      }
      visit(std::span<const int>(ranks));
    });
  });
}

using DataGroups = std::array<DataGroup, kDataGroups>;

/// Of one stage; all stages are alike.
DataGroups data_groups(const Parallelism& cut, const Placement& placement, int stage);

}  // namespace lockstep
