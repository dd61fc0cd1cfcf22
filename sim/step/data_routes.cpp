#include "sim/step/data_routes.hpp"

#include <algorithm>
#include <map>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>

#include "sim/fabric/collective_load.hpp"
#include "topologies/switch_limits.hpp"

namespace lockstep {
namespace {

constexpr std::string_view kRing = "ring";

/// The ring between the NVLink domains of the groups.
void add_ring_uses(int replicas, int stage, const DataGroup& group, int which, Lanes& lanes,
                   std::vector<RouteHop>& uses) {
  for (int d = 0; d < replicas; ++d) {
    if (which != kEveryGroup && group.group_of(d) != which) continue;
    lanes.add_ring(d, stage, group, uses);
  }
}

std::vector<FabricMember> members_of_group(std::span<const int> ranks, const Lanes& lanes) {
  std::vector<FabricMember> members;
  members.reserve(ranks.size());
  for (const int rank : ranks) {
    members.push_back({.place = {lanes.placement().domain_of(rank), rank},
                       .node = lanes.node_of(rank),
                       .nic = lanes.placement().nic_of(rank)});
  }
  return members;
}

/// The shape for each byte that a member sends on average; without edges where the group stays in
/// one NVLink domain.
CollectiveShape shape_per_sent_byte(const DataChannel& channel,
                                    const std::vector<FabricMember>& members) {
  const std::vector<GroupMember> places = places_of(members);
  std::size_t rails = members.size();
  for (const GroupNode& node : group_nodes(places)) rails = std::min(rails, node.members.size());
  // Two channels a rail, so that every rail has its part of both trees.
  CollectiveShape shape =
      collective_shape(channel.op, channel.cost.algorithm, places, 2 * static_cast<int>(rails));
  double sent = 0;
  for (const NetworkEdge& edge : shape.edges) sent += edge.from == kSwitch ? 0 : edge.bytes;
  for (NetworkEdge& edge : shape.edges) edge.bytes *= static_cast<double>(members.size()) / sent;
  return shape;
}

bool switches_limit(const Fabric& fabric) {
  return !switch_limits(fabric.spec(), fabric.nodes(), fabric.nics_per_node(),
                        fabric.nic_bandwidth())
              .empty();
}

/// Of trees, of sums in switches, and of all else that is no ring.
void add_shape_uses(const PlacementSpec& spec, const StagePlan& stage, const DataChannel& channel,
                    int which, const Lanes& lanes, std::vector<RouteHop>& uses) {
  const Placement& placement = lanes.placement();
  const Fabric& fabric = lanes.fabric();
  const auto load_of = [&](auto&& counts) {
    CollectiveLoad load(fabric);
    for_each_group(stage.groups[static_cast<std::size_t>(channel.group)], spec, placement,
                   stage.stage, which, [&](std::span<const int> ranks) {
                     if (ranks.size() < 2 || !counts(ranks)) return;
                     const std::vector<FabricMember> members = members_of_group(ranks, lanes);
                     load.add(shape_per_sent_byte(channel, members), members, kFirstHashSeed);
                   });
    return load.by_link();
  };
  std::vector<double> by_link = load_of([](std::span<const int>) { return true; });
  if (lanes.symmetric()) {
    // Lane 0 stands for the others, on the links that it uses itself.
    const std::vector<double> own = load_of([&](std::span<const int> ranks) {
      return std::ranges::any_of(ranks,
                                 [&](int rank) { return placement.coordinates(rank).tensor == 0; });
    });
    for (std::size_t link = 0; link < own.size(); ++link) {
      if (own[link] <= 0) by_link[link] = 0;
    }
  }
  // What NICs take is part of the collective's law: each carries the mean.
  const double sharing = std::max(1.0, static_cast<double>(spec.gpus_per_node) / spec.nic_ports);
  for (FabricLink link = 0; link < by_link.size(); ++link) {
    if (by_link[link] <= 0) continue;
    uses.push_back({link, fabric.joins_nic(link) ? sharing : by_link[link]});
  }
}

}  // namespace

bool DataWay::is_ring() const { return first->cost.algorithm == kRing; }

std::vector<DataWay> data_ways(const StagePlan& stage) {
  std::map<std::tuple<DataGroupKind, bool, std::string_view, CollectiveOp>, DataWay> ways;
  for (std::size_t c = 0; c < stage.channels.size(); ++c) {
    const DataChannel& channel = stage.channels[c];
    if (!stage.groups[static_cast<std::size_t>(channel.group)].crosses_domains) continue;
    const bool ring = channel.cost.algorithm == kRing;
    // Rings load the same links whatever the operation.
    DataWay& way = ways[{channel.group, !ring, ring ? kRing : channel.cost.algorithm,
                         ring ? CollectiveOp::all_reduce : channel.op}];
    if (way.first == nullptr) way.first = &channel;
    way.channels.push_back(c);
  }
  std::vector<DataWay> out;
  for (auto& [key, way] : ways) out.push_back(std::move(way));
  return out;
}

void add_data_uses(const StepPlan& plan, const StagePlan& stage, const DataWay& way, int which,
                   Lanes& lanes, std::vector<RouteHop>& uses) {
  const DataGroup& group = stage.groups[static_cast<std::size_t>(way.first->group)];
  // Where no switch can limit the NICs' links are all that matters, and every algorithm loads those
  // as a ring does; more replicas are then folded into one.
  if (way.is_ring() || !switches_limit(lanes.fabric())) {
    return add_ring_uses(plan.placement.data, stage.stage, group, which, lanes, uses);
  }
  add_shape_uses(plan.placement, stage, *way.first, which, lanes, uses);
}

}  // namespace lockstep
