/// The groups in which replicas exchange gradients and weights.
#pragma once

#include <array>
#include <cstdint>

#include "models/collectives/group_spread.hpp"
#include "models/transformer.hpp"
#include "topologies/placement.hpp"

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
  int ranks = 1;                 ///< members, those side by side counted
  DomainSpreads spreads{};       ///< how the stage's groups lie over NVLink domains
  int per_domain = 1;            ///< most members of a group in one NVLink domain
  int replicas = 1;              ///< data-parallel replicas among the members
  int stride = 1;                ///< between neighbours, in replicas
  int replicas_per_domain = 1;   ///< most of a group
  bool crosses_domains = false;  ///< replicas of a group do

  /// The replica to which `replica` sends in the ring between NVLink domains: its like in the next.
  [[nodiscard]] int next(int replica) const {
    const int index = replica / stride % replicas;
    return replica + ((index + replicas_per_domain) % replicas - index) * stride;
  }
};
using DataGroups = std::array<DataGroup, kDataGroups>;

/// Of one stage; all stages are alike.
DataGroups data_groups(const Parallelism& cut, const Placement& placement, int stage);

}  // namespace lockstep
