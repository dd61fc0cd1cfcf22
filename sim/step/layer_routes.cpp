#include "sim/step/layer_routes.hpp"

#include <algorithm>
#include <utility>

#include "models/collectives/algorithms.hpp"
#include "sim/fabric/connections.hpp"
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

/// `lane`: counted through the replicas of the block.
FabricMember LayerRoutes::member(int lane, const Block& block) const {
  const int lanes = plan_.placement.tensor;
  const int rank = lanes_.rank({block.first + lane / lanes, block.stage}, lane % lanes);
  return {.place = {lanes_.placement().domain_of(rank), rank},
          .node = lanes_.node_of(rank),
          .nic = lanes_.placement().nic_of(rank)};
}

void LayerRoutes::route_group(const std::vector<int>& lanes, const LayerTransfer& transfer,
                              Block& block) {
  if (lanes.size() < 2) return;
  std::vector<FabricMember> members;
  members.reserve(lanes.size());
  for (const int lane : lanes) members.push_back(member(lane, block));
  const std::vector<GroupMember> places = places_of(members);
  // Two channels a rail, so that every rail has its part of both trees.
  const int channels = kChannelsPerRail * static_cast<int>(members.size());
  // NCCL has so many on each rail of the node with fewest members.
  const std::vector<GroupNode> nodes = group_nodes(places);
  const std::size_t rails = std::ranges::min(nodes, {}, [](const GroupNode& n) {
                              return n.members.size();
                            }).members.size();
  const int channels_over_nccl = static_cast<int>(members.size() / rails);
  for (const LayerPattern& pattern : transfer.patterns) {
    const CollectiveShape shape =
        collective_shape(pattern.op, pattern.algorithm, places, channels, transfer.peer_channels);
    const std::vector<NetworkEdge> edges = written_edges(shape, places);
    const bool to_peers =
        shape.pairs != PairPattern::none || pattern.op == CollectiveOp::send_receive;
    const auto connections_of = [&](const NetworkEdge& edge) {
      return to_peers ? edge.channels : std::max(1, edge.channels / channels_over_nccl);
    };
    double sent = 0;
    for (const NetworkEdge& edge : edges) sent += edge.bytes;
    if (sent <= 0) continue;  // this group of the axis stays in its domain
    const double per_byte =
        transfer.network_share * pattern.share * static_cast<double>(members.size()) / sent;
    for (const NetworkEdge& edge : edges) {
      const FabricMember &from = members[static_cast<std::size_t>(edge.from)],
                         &to = members[static_cast<std::size_t>(edge.to)];
      hops_.clear();
      route_connections(lanes_.fabric(), {from.node, from.nic}, {to.node, to.nic}, kFirstHashSeed,
                        connections_of(edge), hops_);
      const int replica = lanes[static_cast<std::size_t>(edge.from)] / plan_.placement.tensor;
      auto& uses = block.of_replica[static_cast<std::size_t>(replica)];
      for (const RouteHop& hop : hops_) {
        if (!lanes_.fabric().joins_nic(hop.link))
          uses.push_back({hop.link, hop.share * edge.bytes * per_byte});
      }
    }
  }
}

}  // namespace lockstep
