/// What ranks exchange inside layers, as bytes over the fabric's links: tensor-, context- and
/// expert-parallel groups that leave their NVLink domain.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "sim/fabric/group_uses.hpp"
#include "sim/step/lanes.hpp"
#include "sim/step/plan.hpp"

namespace lockstep {

class LayerRoutes {
 public:
  /// Both outlive this.
  LayerRoutes(const StepPlan& plan, const Lanes& lanes)
      : plan_(plan), lanes_(lanes), groups_(lanes.fabric()) {}

  /// Adds what the ranks of one place send along the axis, for each byte of Segment::amounts: over
  /// the NIC of its first lane, with the lanes that share it (on a drawn fabric, whose NICs may be
  /// unequal, over those of all lanes), and over the links between switches that any of its lanes
  /// uses. Costs least where places come in the order of replicas.
  void add(Place at, Axis axis, std::vector<RouteHop>& uses);
  /// The messages into which a NIC divides what a rank of the place sends along the axis, as its
  /// first group has them. Requires that some leaves its node.
  [[nodiscard]] double messages(Place at, Axis axis);
  /// What the NVLink port of a GPU of the place carries over the mean, out of the GPU and into it;
  /// of several lanes the most.
  [[nodiscard]] std::array<double, 2> nvlink_shares(Place at, Axis axis);

 private:
  /// The groups that a set of neighbouring replicas form among themselves.
  struct Block {
    int first = -1;                                 ///< replica
    std::vector<std::vector<RouteHop>> of_replica;  ///< links between switches only
    std::vector<PortBytes> of_lane;  ///< through all replicas, over the mean; empty: all alike
  };
  [[nodiscard]] const LayerTransfer& transfer_of(Place at, Axis axis) const {
    return plan_.costs(plan_.place(at.data, at.stage).pool).layer(axis);
  }
  Block& block_of(Place at, Axis axis, const LayerTransfer& transfer);
  void add_nics(Place at, const LayerTransfer& transfer, const Block& block,
                std::vector<RouteHop>& uses) const;
  void route_block(int stage, Axis axis, const LayerTransfer& transfer, Block& block);
  /// The members of a group on these lanes, counted from replica `first` on.
  [[nodiscard]] std::vector<FabricMember> members_on(int first, int stage,
                                                     const std::vector<int>& lanes) const;
  void route_group(int stage, const std::vector<int>& lanes, const LayerTransfer& transfer,
                   Block& block);
  void add_ports(const GroupCollective& collective, std::span<const FabricMember> members,
                 const std::vector<int>& lanes, double share, Block& block);

  const StepPlan& plan_;
  const Lanes& lanes_;
  std::array<std::vector<Block>, kAxes> blocks_;  ///< routed last, by axis and stage
  GroupUses groups_;
};

}  // namespace lockstep
