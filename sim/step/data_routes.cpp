#include "sim/step/data_routes.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>

#include "sim/fabric/group_uses.hpp"
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

/// Of trees, of sums in switches, and of all else that is no ring.
void add_shape_uses(const PlacementSpec& spec, const StagePlan& stage, const DataChannel& channel,
                    int which, const Lanes& lanes, std::vector<RouteHop>& uses) {
  const Placement& placement = lanes.placement();
  const DataGroup& of_kind = stage.groups[static_cast<std::size_t>(channel.group)];
  const bool alike = of_kind.lanes == 1 && lanes_share_leaf(stage, spec, lanes);
  const std::size_t begin = uses.size();
  std::vector<RouteHop> others;
  std::vector<bool> known(alike ? 0 : lanes.fabric().link_count());
  GroupUses routes(lanes.fabric());
  for_each_group(of_kind, spec, placement, stage.stage, which, [&](std::span<const int> ranks) {
    if (ranks.size() < 2) return;
    // Where routes are symmetric lane 0 stands for the others, on the links that it uses itself.
    const bool first = !lanes.symmetric() || std::ranges::any_of(ranks, [&](int rank) {
      return placement.coordinates(rank).tensor == 0;
    });
    if (alike && !first) return;
    std::vector<RouteHop>& of_group = first ? uses : others;
    const std::size_t own = of_group.size();
    routes.add({.op = channel.op, .algorithm = channel.cost.algorithm},
               members_of_group(ranks, lanes), of_group);
    for (std::size_t i = own; first && !alike && i < of_group.size(); ++i) {
      known[of_group[i].link] = true;
    }
  });
  if (alike) {
    const double groups = static_cast<double>(spec.tensor) / of_kind.lanes;
    const double nics = std::max(1.0, static_cast<double>(spec.gpus_per_node) / spec.nic_ports);
    for (std::size_t i = begin; i < uses.size(); ++i) {
      uses[i].share *= lanes.fabric().joins_nic(uses[i].link) ? std::min(groups, nics) : groups;
    }
  }
  std::ranges::copy_if(others, std::back_inserter(uses),
                       [&known](const RouteHop& use) { return known[use.link]; });
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
  out.reserve(ways.size());
  for (auto& [key, way] : ways) out.push_back(std::move(way));
  return out;
}

void add_data_uses(const StepPlan& plan, const StagePlan& stage, const DataWay& way, int which,
                   Lanes& lanes, std::vector<RouteHop>& uses) {
  const DataGroup& group = stage.groups[static_cast<std::size_t>(way.first->group)];
  // Where no switch can limit the NICs' links are all that matters, and every algorithm loads those
  // as a ring does; more replicas are then folded into one.
  if (way.is_ring() || switch_limits(lanes.fabric()).empty()) {
    return add_ring_uses(plan.placement.data, stage.stage, group, which, lanes, uses);
  }
  add_shape_uses(plan.placement, stage, *way.first, which, lanes, uses);
}

}  // namespace lockstep
