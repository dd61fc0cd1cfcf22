#include "sim/step/data_routes.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "models/base/shared_memo.hpp"
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

/// Whether each group has as many members in every domain that holds one: rings cross a domain once
/// for each member of the smallest one, and a fuller domain sends no more than that.
bool lies_evenly(const DataGroup& group) {
  return std::ranges::all_of(group.spreads.ways(), [](const DomainSpread& spread) {
    return spread.per_domain_max == 0 || spread.per_domain_max == spread.per_domain;
  });
}

/// Whether DataGroup::next() is in the next domain for each group that crosses any: where they lie
/// in several ways, it goes by those that have most members in one, and leaves no domain of theirs.
bool next_leaves_domain(const DataGroup& group) {
  return std::ranges::all_of(group.spreads.ways(), [&group](const DomainSpread& spread) {
    return std::max(spread.per_domain, spread.per_domain_max) == group.per_domain;
  });
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

std::optional<SprayedLayout> sprayed_layout(const StepPlan& plan, const Lanes& lanes, bool limits) {
  const Fabric& fabric = lanes.fabric();
  if (!lanes.symmetric() || fabric.spec().routing == Routing::ecmp || lanes.on_chosen_nodes()) {
    return std::nullopt;
  }
  const FabricCounts& c = fabric.counts();
  return SprayedLayout{.placement = plan.placement,
                       .lanes_alike = lanes.first_stands_for_all(),
                       .kind = fabric.spec().kind,
                       .routing = fabric.spec().routing,
                       .pxn = fabric.spec().pxn,
                       .limits = limits,
                       .nodes = fabric.nodes(),
                       .nics_per_node = fabric.nics_per_node(),
                       .counts = {c.unit_nodes, c.leaves, c.pods, c.pod_leaves, c.leaf_uplinks,
                                  c.spines, c.spine_uplinks, c.cores}};
}

/// What the jobs of a sweep or a search remember of one another: a few hundred layouts of some
/// thousand GPUs each.
constexpr std::size_t kMostRouteBytes = std::size_t{48} << 20U;

struct RingsKey {
  SprayedLayout layout;
  int stage;
  GroupLayout group;

  friend auto operator<=>(const RingsKey&, const RingsKey&) = default;
};
struct ShapeKey {
  RingsKey of;
  CollectiveOp op;
  std::string algorithm;
  int channels;  ///< CollectiveCost::channels
  int which;     ///< group, or kEveryGroup

  friend auto operator<=>(const ShapeKey&, const ShapeKey&) = default;
};

std::size_t bytes_of_shape(const ShapeKey& key, const std::vector<RouteHop>& uses) {
  return sizeof key + key.algorithm.capacity() + uses.capacity() * sizeof(RouteHop);
}
std::size_t bytes_of_rings(const RingsKey& key, const ReplicaRings& rings) {
  return sizeof key + rings.uses.capacity() * sizeof(RouteHop) +
         rings.end.capacity() * sizeof(std::size_t);
}

SharedMemo<RingsKey, ReplicaRings>& known_rings() {
  static SharedMemo<RingsKey, ReplicaRings> known(kMostRouteBytes, bytes_of_rings);
  return known;
}
SharedMemo<ShapeKey, std::vector<RouteHop>>& known_shapes() {
  static SharedMemo<ShapeKey, std::vector<RouteHop>> known(kMostRouteBytes, bytes_of_shape);
  return known;
}

}  // namespace

GroupLayout layout_of(const DataGroup& group) {
  return {.lanes = group.lanes,
          .lane_stride = group.lane_stride,
          .replicas = group.replicas,
          .stride = group.stride,
          .replicas_per_domain = group.replicas_per_domain};
}

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
    way.by_replica = next_leaves_domain(group);
    way.is_ring = ring && way.by_replica && !group.lanes_cross_domains && lies_evenly(group) &&
                  rings_on_every_rail(group, channel.cost);
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
      layout_(sprayed_layout(plan, lanes_, limits_)),
      groups_(fabric),
      shifts_(layout_ ? StageShifts{fabric, lanes_.placement()} : StageShifts{}) {}

void DataRoutes::add(const StagePlan& stage, const DataWay& way, int which,
                     std::vector<RouteHop>& uses) {
  // Where no switch can limit the NICs' links are all that matters, and every algorithm loads those
  // as a ring does; more replicas are then folded into one.
  const DataGroupKind kind = way.first->group;
  const DataGroup& group = stage.groups[static_cast<std::size_t>(kind)];
  if (!way.is_ring && (limits_ || group.replicas == 1 || !way.by_replica)) {
    const Uses& of_shape = shape_uses(stage, *way.first, which);
    uses.insert(uses.end(), of_shape.begin(), of_shape.end());
    return;
  }
  const ReplicaRings& all = rings(stage, kind);
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
const ReplicaRings& DataRoutes::rings(const StagePlan& stage, DataGroupKind kind) {
  std::shared_ptr<const ReplicaRings>& all = rings_[{stage.stage, kind}];
  if (all) return *all;
  const DataGroup& group = stage.groups[static_cast<std::size_t>(kind)];
  if (!layout_) {
    all = std::make_shared<const ReplicaRings>(find_rings(stage, group));
    return *all;
  }
  FoundAt<ReplicaRings>& first = like_rings_[{shifts_.like(stage.stage), layout_of(group)}];
  all = known_rings().get({*layout_, stage.stage, layout_of(group)}, [&] {
    if (!first.found) return find_rings(stage, group);
    ReplicaRings rings = *first.found;
    move_uses(rings.uses, first.stage, stage.stage);
    return rings;
  });
  if (!first.found) first = {stage.stage, all};
  return *all;
}

/// From one stage to another that is like it.
void DataRoutes::move_uses(Uses& uses, int from, int to) const {
  for (RouteHop& use : uses) use.link = shifts_.moved(use.link, from, to);
}

ReplicaRings DataRoutes::find_rings(const StagePlan& stage, const DataGroup& group) {
  ReplicaRings all;
  all.end.reserve(static_cast<std::size_t>(plan_.placement.data));
  for (int d = 0; d < plan_.placement.data; ++d) {
    lanes_.add_ring(d, stage.stage, group, all.uses);
    all.end.push_back(all.uses.size());
  }
  return all;
}

const DataRoutes::Uses& DataRoutes::shape_uses(const StagePlan& stage, const DataChannel& channel,
                                               int which) {
  std::shared_ptr<const Uses>& known = shapes_[{&channel, which}];
  if (known) return *known;
  if (!layout_) {
    known = std::make_shared<const Uses>(find_shape_uses(stage, channel, which));
    return *known;
  }
  const DataGroup& group = stage.groups[static_cast<std::size_t>(channel.group)];
  FoundAt<Uses>& first = like_shapes_[{shifts_.like(stage.stage), layout_of(group), channel.op,
                                       channel.cost.algorithm, channel.cost.channels, which}];
  known = known_shapes().get({.of = {*layout_, stage.stage, layout_of(group)},
                              .op = channel.op,
                              .algorithm = std::string(channel.cost.algorithm),
                              .channels = channel.cost.channels,
                              .which = which},
                             [&] {
                               if (!first.found) return find_shape_uses(stage, channel, which);
                               Uses uses = *first.found;
                               move_uses(uses, first.stage, stage.stage);
                               return uses;
                             });
  if (!first.found) first = {stage.stage, known};
  return *known;
}

/// Of trees, of sums in switches, and of all else that is no ring.
DataRoutes::Uses DataRoutes::find_shape_uses(const StagePlan& stage, const DataChannel& channel,
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
