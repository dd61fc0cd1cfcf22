#include "sim/step/layer_routes.hpp"

#include <algorithm>
#include <span>

#include "topologies/routes/merge_hops.hpp"

namespace lockstep {
namespace {

/// A group on `stride`-apart lanes of a block.
std::vector<int> lanes_of(int first, int count, int stride) {
  std::vector<int> lanes(static_cast<std::size_t>(count));
  for (int m = 0; m < count; ++m) lanes[static_cast<std::size_t>(m)] = first + m * stride;
  return lanes;
}

GroupCollective collective_of(const LayerPattern& pattern, const LayerTransfer& transfer) {
  return {.op = pattern.op,
          .algorithm = pattern.algorithm,
          .peer_channels = transfer.peer_channels,
          .skew = pattern.skew,
          .channels = pattern.channels};
}

}  // namespace

void LayerRoutes::add(Place at, Axis axis, std::vector<RouteHop>& uses) {
  const LayerTransfer& transfer = transfer_of(at, axis);
  if (transfer.network_share <= 0) return;
  const Block& block = block_of(at, axis, transfer);
  add_nics(at, transfer, block, uses);
  const auto& own = block.of_replica[static_cast<std::size_t>(at.data - block.first)];
  uses.insert(uses.end(), own.begin(), own.end());
}

std::array<double, 2> LayerRoutes::nvlink_shares(Place at, Axis axis) {
  const LayerTransfer& transfer = transfer_of(at, axis);
  if (!transfer.is_skewed()) return {1, 1};
  const Block& block = block_of(at, axis, transfer);
  const auto lanes = static_cast<std::size_t>(plan_.placement.tensor);
  const auto own = std::span(block.of_lane)
                       .subspan(static_cast<std::size_t>(at.data - block.first) * lanes, lanes);
  return {std::ranges::max(own, {}, &PortBytes::nvlink_out).nvlink_out,
          std::ranges::max(own, {}, &PortBytes::nvlink_in).nvlink_in};
}

LayerRoutes::Block& LayerRoutes::block_of(Place at, Axis axis, const LayerTransfer& transfer) {
  const int replicas = is_of_experts(axis) ? plan_.widths.expert_replicas() : 1;
  std::vector<Block>& of_axis = blocks_[static_cast<std::size_t>(axis)];
  of_axis.resize(plan_.stages.size());
  Block& block = of_axis[static_cast<std::size_t>(at.stage)];
  const int first = at.data / replicas * replicas;
  if (block.first == first) return block;
  block = {.first = first, .of_replica = {}, .of_lane = {}};
  block.of_replica.resize(static_cast<std::size_t>(replicas));
  if (transfer.is_skewed()) {
    const int lanes = replicas * plan_.placement.tensor;
    block.of_lane.resize(static_cast<std::size_t>(lanes));
  }
  route_block(at.stage, axis, transfer, block);
  return block;
}

void LayerRoutes::add_nics(Place at, const LayerTransfer& transfer, const Block& block,
                           std::vector<RouteHop>& uses) const {
  const Placement& placement = lanes_.placement();
  const int lanes = plan_.placement.tensor;
  const bool skewed = !block.of_lane.empty();
  // What may be broken or slow is a drawn fabric: there no lane stands for others, nor where some
  // have experts in demand.
  const int routed = lanes_.fabric().is_drawn() || skewed ? lanes : 1;
  const std::size_t before = uses.size();
  std::vector<RouteHop> links;
  for (int lane = 0; lane < routed; ++lane) {
    const int rank = lanes_.rank(at, lane);
    const int node = lanes_.node_of(rank), nic = placement.nic_of(rank);
    // Lanes of the place that share the port; those of other places bring their own part.
    double sharing = 1;
    for (int other = 1; routed == 1 && other < lanes; ++other) {
      const int with = lanes_.rank(at, other);
      sharing += lanes_.node_of(with) == node && placement.nic_of(with) == nic ? 1 : 0;
    }
    PortBytes port{.network_out = 1, .network_in = 1};
    if (skewed) {
      const int number = (at.data - block.first) * lanes + lane;
      port = block.of_lane[static_cast<std::size_t>(number)];
    }
    const auto put = [&](double bytes) {
      for (const RouteHop& hop : links) {
        if (bytes <= 0) break;  // a rank that no token is for
        uses.push_back({hop.link, hop.share * sharing * transfer.network_share * bytes});
      }
      links.clear();
    };
    lanes_.fabric().nic_ups(node, nic, links);
    put(port.network_out);
    lanes_.fabric().nic_downs(node, nic, links);
    put(port.network_in);
  }
  if (routed > 1) merge_hops(uses, before);
}

void LayerRoutes::route_block(int stage, Axis axis, const LayerTransfer& transfer, Block& block) {
  const LayerWidths& w = plan_.widths;
  const int lanes = w.tensor * w.context;
  switch (axis) {
    case Axis::tensor:
      for (int c = 0; c < w.context; ++c) {
        route_group(stage, lanes_of(c * w.tensor, w.tensor, 1), transfer, block);
      }
      break;
    case Axis::context:
      for (int t = 0; t < w.tensor; ++t) {
        route_group(stage, lanes_of(t, w.context, w.tensor), transfer, block);
      }
      break;
    case Axis::expert:
    case Axis::expert_return: {
      const int all = lanes * static_cast<int>(block.of_replica.size());
      const int holds_all = w.expert * w.expert_tensor;
      for (int first = 0; first + holds_all <= all; first += holds_all) {
        for (int part = 0; part < w.expert_tensor; ++part) {
          route_group(stage, lanes_of(first + part, w.expert, w.expert_tensor), transfer, block);
        }
      }
      break;
    }
  }
  for (std::vector<RouteHop>& uses : block.of_replica) merge_hops(uses, 0);
}

/// `lanes`: counted through the replicas of the block.
void LayerRoutes::route_group(int stage, const std::vector<int>& lanes,
                              const LayerTransfer& transfer, Block& block) {
  if (lanes.size() < 2) return;
  const std::vector<FabricMember> members = members_on(block.first, stage, lanes);
  std::vector<std::size_t> replicas;
  replicas.reserve(lanes.size());
  for (const int lane : lanes) {
    replicas.push_back(static_cast<std::size_t>(lane / plan_.placement.tensor));
  }
  for (const LayerPattern& pattern : transfer.patterns) {
    const GroupCollective collective = collective_of(pattern, transfer);
    groups_.add_by_sender(collective, members, transfer.network_share * pattern.share, replicas,
                          block.of_replica);
    if (!block.of_lane.empty()) add_ports(collective, members, lanes, pattern.share, block);
  }
}

std::vector<FabricMember> LayerRoutes::members_on(int first, int stage,
                                                  const std::vector<int>& lanes) const {
  const int of_replica = plan_.placement.tensor;
  std::vector<FabricMember> members;
  members.reserve(lanes.size());
  for (const int lane : lanes) {
    const Place at{first + lane / of_replica, stage};
    members.push_back(lanes_.member(lanes_.rank(at, lane % of_replica)));
  }
  return members;
}

double LayerRoutes::messages(Place at, Axis axis) {
  const LayerTransfer& transfer = transfer_of(at, axis);
  const LayerWidths& w = plan_.widths;
  const bool experts = is_of_experts(axis);
  const int first = experts ? at.data / w.expert_replicas() * w.expert_replicas() : at.data;
  const std::vector<int> lanes = experts                ? lanes_of(0, w.expert, w.expert_tensor)
                                 : axis == Axis::tensor ? lanes_of(0, w.tensor, 1)
                                                        : lanes_of(0, w.context, w.tensor);
  const std::vector<FabricMember> members = members_on(first, at.stage, lanes);
  double messages = 0;
  for (const LayerPattern& pattern : transfer.patterns) {
    messages += pattern.share * groups_.messages(collective_of(pattern, transfer), members);
  }
  return std::max(1.0, messages);
}

/// What the ports of these members carry, of a part of the exchange.
void LayerRoutes::add_ports(const GroupCollective& collective,
                            std::span<const FabricMember> members, const std::vector<int>& lanes,
                            double share, Block& block) {
  const std::span<const PortBytes> ports = groups_.ports(collective, members);
  for (std::size_t m = 0; m < lanes.size(); ++m) {
    constexpr PortBytes kEven{1, 1, 1, 1};
    const PortBytes& own = ports.empty() ? kEven : ports[m];
    PortBytes& sum = block.of_lane[static_cast<std::size_t>(lanes[m])];
    sum.network_out += share * own.network_out;
    sum.network_in += share * own.network_in;
    sum.nvlink_out += share * own.nvlink_out;
    sum.nvlink_in += share * own.nvlink_in;
  }
}

}  // namespace lockstep
