#include "sim/step/data_routes.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>

#include "models/collectives/algorithms.hpp"
#include "sim/fabric/group_uses.hpp"
#include "topologies/fabrics/switch_limits.hpp"

namespace lockstep {
namespace {

constexpr std::string_view kRing = "ring";

/// Of a channel's algorithm, as far as it decides who sends what to whom.
GroupCollective collective_of(const DataChannel& channel) {
  return {.op = channel.op, .algorithm = channel.cost.algorithm, .channels = channel.cost.channels};
}

/// Whether rings leave the domains of a group on all of its members' rails.
bool rings_on_every_rail(const DataGroup& group, const CollectiveCost& cost) {
  const int rails =
      std::ranges::min(group.spreads.ways(), {}, &DomainSpread::per_domain).per_domain;
  return cost.channels >= kChannelsPerRail * rails;
}

std::vector<FabricMember> members_of_group(std::span<const int> ranks, const Lanes& lanes) {
  std::vector<FabricMember> members;
  members.reserve(ranks.size());
  for (const int rank : ranks) members.push_back(lanes.member(rank));
  return members;
}

/// Whether the lanes of a place are on one leaf, so that all of them take the same links between
/// switches.
bool lanes_share_leaf(const StagePlan& stage, const PlacementSpec& spec, const Lanes& lanes) {
  if (!lanes.symmetric()) return false;
  for (int d = 0; d < spec.data; ++d) {
    for (int lane = 1; lane < spec.tensor; ++lane) {
      const int first = lanes.rank({d, stage.stage}), rank = lanes.rank({d, stage.stage}, lane);
      const Fabric& fabric = lanes.fabric();
      const int leaf = fabric.leaf_of(lanes.node_of(first), lanes.placement().nic_of(first));
      if (fabric.leaf_of(lanes.node_of(rank), lanes.placement().nic_of(rank)) != leaf) return false;
    }
  }
  return true;
}

}  // namespace

std::vector<DataWay> data_ways(const StagePlan& stage) {
  std::map<std::tuple<DataGroupKind, bool, std::string_view, CollectiveOp>, DataWay> ways;
  for (std::size_t c = 0; c < stage.channels.size(); ++c) {
    const DataChannel& channel = stage.channels[c];
    const DataGroup& group = stage.groups[static_cast<std::size_t>(channel.group)];
    if (!group.crosses_domains) continue;
    const bool ring = channel.cost.algorithm == kRing;
    // Rings load the same links whatever the operation.
    DataWay& way = ways[{channel.group, !ring, ring ? kRing : channel.cost.algorithm,
                         ring ? CollectiveOp::all_reduce : channel.op}];
    if (way.first == nullptr) way.first = &channel;
    way.is_ring = ring && !group.lanes_cross_domains && rings_on_every_rail(group, channel.cost);
    way.channels.push_back(c);
  }
  std::vector<DataWay> out;
  out.reserve(ways.size());
  for (auto& [key, way] : ways) out.push_back(std::move(way));
  return out;
}

DataRoutes::DataRoutes(const StepPlan& plan, const Fabric& fabric, std::vector<int> nodes)
    : plan_(plan),
      lanes_(plan, fabric, std::move(nodes)),
      limits_(!switch_limits(fabric).empty()),
      groups_(fabric) {}

void DataRoutes::add(const StagePlan& stage, const DataWay& way, int which,
                     std::vector<RouteHop>& uses) {
  // Where no switch can limit the NICs' links are all that matters, and every algorithm loads those
  // as a ring does; more replicas are then folded into one.
  const DataGroupKind kind = way.first->group;
  const DataGroup& group = stage.groups[static_cast<std::size_t>(kind)];
  if (!way.is_ring && (limits_ || group.replicas == 1)) {
    const auto [known, is_new] = shapes_.try_emplace({way.first, which});
    if (is_new) known->second = shape_uses(stage, *way.first, which);
    uses.insert(uses.end(), known->second.begin(), known->second.end());
    return;
  }
  const Rings& all = rings(stage, kind);
  const auto add_replica = [&all, &uses](int replica) {
    const auto d = static_cast<std::size_t>(replica);
    const std::size_t first = d == 0 ? 0 : all.end[d - 1];
    const std::span own = std::span(all.uses).subspan(first, all.end[d] - first);
    uses.insert(uses.end(), own.begin(), own.end());
  };
  if (which == kEveryGroup) {
    for (int d = 0; d < plan_.placement.data; ++d) add_replica(d);
    return;
  }
  for (int i = 0; i < group.replicas; ++i) {
    const int replica = group.member(which, i);
    if (replica < plan_.placement.data) add_replica(replica);  // the last group may be smaller
  }
}

double DataRoutes::messages(const StagePlan& stage, const DataWay& way, int replica) {
  const DataGroup& group = stage.groups[static_cast<std::size_t>(way.first->group)];
  if (way.is_ring) {
    return fabric().spec().routing == Routing::ecmp ? plan_.connections.ring : 1;
  }
  double most = 1;
  for_each_group(group, plan_.placement, lanes_.placement(), stage.stage, group.group_of(replica),
                 [&](std::span<const int> ranks) {
                   if (ranks.size() < 2 || most > 1) return;
                   most = std::max(most, groups_.messages(collective_of(*way.first),
                                                          members_of_group(ranks, lanes_)));
                 });
  return most;
}

/// The rings between the NVLink domains of the groups.
const DataRoutes::Rings& DataRoutes::rings(const StagePlan& stage, DataGroupKind kind) {
  const auto [known, is_new] = rings_.try_emplace({stage.stage, kind});
  Rings& all = known->second;
  for (int d = 0; is_new && d < plan_.placement.data; ++d) {
    lanes_.add_ring(d, stage.stage, stage.groups[static_cast<std::size_t>(kind)], all.uses);
    all.end.push_back(all.uses.size());
  }
  return all;
}

/// Of trees, of sums in switches, and of all else that is no ring.
std::vector<RouteHop> DataRoutes::shape_uses(const StagePlan& stage, const DataChannel& channel,
                                             int which) {
  const PlacementSpec& spec = plan_.placement;
  const Placement& placement = lanes_.placement();
  const DataGroup& of_kind = stage.groups[static_cast<std::size_t>(channel.group)];
  // For speed: where the lanes of a place are on one leaf, their groups put the same on the same
  // links between switches, so that one is routed and counted for all, and on its NIC port for the
  // lanes that share it. Elsewhere all are routed, and lane 0 takes their part of its own links.
  const bool alike = of_kind.lanes == 1 && lanes_share_leaf(stage, spec, lanes_);
  std::vector<RouteHop> uses, others;
  std::vector<bool> known(alike ? 0 : lanes_.fabric().link_count());
  for_each_group(of_kind, spec, placement, stage.stage, which, [&](std::span<const int> ranks) {
    if (ranks.size() < 2) return;
    // Where routes are symmetric lane 0 stands for the others, on the links that it uses itself.
    const bool first = !lanes_.symmetric() || std::ranges::any_of(ranks, [&](int rank) {
      return placement.coordinates(rank).tensor == 0;
    });
    if (alike && !first) return;
    std::vector<RouteHop>& of_group = first ? uses : others;
    const std::size_t own = of_group.size();
    groups_.add(collective_of(channel), members_of_group(ranks, lanes_), of_group);
    for (std::size_t i = own; first && !alike && i < of_group.size(); ++i) {
      known[of_group[i].link] = true;
    }
  });
  if (alike) {
    const double groups = static_cast<double>(spec.tensor) / of_kind.lanes;
    const double nics = std::max(1.0, static_cast<double>(spec.gpus_per_node) / spec.nic_ports);
    for (RouteHop& use : uses) {
      use.share *= lanes_.fabric().joins_nic(use.link) ? std::min(groups, nics) : groups;
    }
  }
  std::ranges::copy_if(others, std::back_inserter(uses),
                       [&known](const RouteHop& use) { return known[use.link]; });
  return uses;
}

}  // namespace lockstep
