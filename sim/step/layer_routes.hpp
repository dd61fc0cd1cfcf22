/// What ranks exchange inside layers, as bytes over the fabric's links: tensor-, context- and
/// expert-parallel groups that leave their NVLink domain.
#pragma once

#include <array>
#include <cstddef>
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

  /// Whether transfers of the axis leave NICs at this place.
  [[nodiscard]] bool on_network(Place at, Axis axis) const {
    return plan_.costs(plan_.place(at.data, at.stage).pool).layer(axis).network_share > 0;
  }
  /// Adds what the ranks of one place send along the axis, for each byte of Segment::amounts: over
  /// the NIC of its first lane, with the lanes that share it (on a drawn fabric, whose NICs may be
  /// unequal, over those of all lanes), and over the links between switches that any of its lanes
  /// uses. Costs least where places come in the order of replicas.
  void add(Place at, Axis axis, std::vector<RouteHop>& uses);

 private:
  /// The groups that a set of neighbouring replicas form among themselves.
  struct Block {
    int first = 0;  ///< replica
    int stage = -1;
    std::vector<std::vector<RouteHop>> of_replica;  ///< links between switches only
  };
  void add_nics(Place at, const LayerTransfer& transfer, std::vector<RouteHop>& uses) const;
  void route_block(Axis axis, const LayerTransfer& transfer, Block& block);
  void route_group(const std::vector<int>& lanes, const LayerTransfer& transfer, Block& block);

  const StepPlan& plan_;
  const Lanes& lanes_;
  std::array<Block, kAxes> blocks_;  ///< routed last, by axis
  GroupUses groups_;
};

}  // namespace lockstep
