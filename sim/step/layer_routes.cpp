#include "sim/step/layer_routes.hpp"

#include "topologies/routes/merge_hops.hpp"

namespace lockstep {
namespace {

/// A group on `stride`-apart lanes of a block.
std::vector<int> lanes_of(int first, int count, int stride) {
  std::vector<int> lanes(static_cast<std::size_t>(count));
  for (int m = 0; m < count; ++m) lanes[static_cast<std::size_t>(m)] = first + m * stride;
  return lanes;
}

}  // namespace

void LayerRoutes::add(Place at, Axis axis, std::vector<RouteHop>& uses) {
  const LayerTransfer& transfer = plan_.costs(plan_.place(at.data, at.stage).pool).layer(axis);
  if (transfer.network_share <= 0) return;
  add_nics(at, transfer, uses);
  const int replicas = axis == Axis::expert ? plan_.widths.expert_replicas() : 1;
  Block& block = blocks_[static_cast<std::size_t>(axis)];
  const int first = at.data / replicas * replicas;
  if (block.stage != at.stage || block.first != first || block.of_replica.empty()) {
    block = {.first = first, .stage = at.stage, .of_replica = {}};
    block.of_replica.resize(static_cast<std::size_t>(replicas));
    route_block(axis, transfer, block);
  }
  const auto& own = block.of_replica[static_cast<std::size_t>(at.data - first)];
  uses.insert(uses.end(), own.begin(), own.end());
}

void LayerRoutes::add_nics(Place at, const LayerTransfer& transfer,
                           std::vector<RouteHop>& uses) const {
  const Placement& placement = lanes_.placement();
  // What may be broken or slow is a drawn fabric: there no lane stands for others.
  const int routed = lanes_.fabric().is_drawn() ? plan_.placement.tensor : 1;
  const std::size_t before = uses.size();
  std::vector<RouteHop> links;
  for (int lane = 0; lane < routed; ++lane) {
    const int rank = lanes_.rank(at, lane);
    const int node = lanes_.node_of(rank), nic = placement.nic_of(rank);
    // Lanes of the place that share the port; those of other places bring their own part.
    double sharing = 1;
    for (int other = 1; routed == 1 && other < plan_.placement.tensor; ++other) {
      const int with = lanes_.rank(at, other);
      sharing += lanes_.node_of(with) == node && placement.nic_of(with) == nic ? 1 : 0;
    }
    links.clear();
    lanes_.fabric().nic_ups(node, nic, links);
    lanes_.fabric().nic_downs(node, nic, links);
    for (const RouteHop& hop : links) {
      uses.push_back({hop.link, hop.share * sharing * transfer.network_share});
    }
  }
  if (routed > 1) merge_hops(uses, before);
}

void LayerRoutes::route_block(Axis axis, const LayerTransfer& transfer, Block& block) {
  const LayerWidths& w = plan_.widths;
  const int lanes = w.tensor * w.context;
  switch (axis) {
    case Axis::tensor:
      for (int c = 0; c < w.context; ++c) {
        route_group(lanes_of(c * w.tensor, w.tensor, 1), transfer, block);
      }
      break;
    case Axis::context:
      for (int t = 0; t < w.tensor; ++t) {
        route_group(lanes_of(t, w.context, w.tensor), transfer, block);
      }
      break;
    case Axis::expert: {
      const int all = lanes * static_cast<int>(block.of_replica.size());
      const int holds_all = w.expert * w.expert_tensor;
      for (int first = 0; first + holds_all <= all; first += holds_all) {
        for (int part = 0; part < w.expert_tensor; ++part) {
          route_group(lanes_of(first + part, w.expert, w.expert_tensor), transfer, block);
        }
      }
      break;
    }
  }
  for (std::vector<RouteHop>& uses : block.of_replica) merge_hops(uses, 0);
}

/// `lanes`: counted through the replicas of the block.
void LayerRoutes::route_group(const std::vector<int>& lanes, const LayerTransfer& transfer,
                              Block& block) {
  if (lanes.size() < 2) return;
  const int of_replica = plan_.placement.tensor;
  std::vector<FabricMember> members;
  std::vector<std::size_t> replicas;
  members.reserve(lanes.size());
  replicas.reserve(lanes.size());
  for (const int lane : lanes) {
    const int replica = lane / of_replica;
    members.push_back(
        lanes_.member(lanes_.rank({block.first + replica, block.stage}, lane % of_replica)));
    replicas.push_back(static_cast<std::size_t>(replica));
  }
  for (const LayerPattern& pattern : transfer.patterns) {
    groups_.add_by_sender(
        {.op = pattern.op, .algorithm = pattern.algorithm, .peer_channels = transfer.peer_channels},
        members, transfer.network_share * pattern.share, replicas, block.of_replica);
  }
}

}  // namespace lockstep
