#include "sim/step/replica_classes.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <compare>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>

#include "models/base/shared_memo.hpp"
#include "sim/step/colour_refinement.hpp"
#include "sim/step/lanes.hpp"
#include "sim/step/layer_routes.hpp"
#include "sim/step/site.hpp"
#include "topologies/routes/merge_hops.hpp"

namespace lockstep {
namespace {

constexpr std::uint32_t kUnused = std::numeric_limits<std::uint32_t>::max();

/// Slowdown of each stage of a replica that has a slow GPU; the group runs at its slowest member.
using Slowdowns = std::map<int, std::vector<double>>;

Slowdowns slow_replicas(const Scenario& scenario, const Placement& placement) {
  Slowdowns slow;
  const auto stages = static_cast<std::size_t>(scenario.job.parallelism.pipeline);
  for (const Straggler& straggler : scenario.stragglers) {
    if (straggler.slowdown == 1.0) continue;
    const RankCoordinates at = placement.coordinates(straggler.gpu);
    auto& stage =
        slow.try_emplace(at.data, stages, 1.0).first->second[static_cast<std::size_t>(at.pipeline)];
    stage = std::max(stage, straggler.slowdown);
  }
  return slow;
}

/// How far the messages of a replica travel, stage by stage, in switches (-1: over NVLink).
std::vector<int> path_kinds(const Lanes& lanes, int data, int stages,
                            const StageShifts& shifts = {}) {
  std::vector<int> kinds;
  for (int s = 0; stages > 1 && s < stages; ++s) {
    if (const int like = shifts.like_with_next(s); like < s && s + 1 < stages) {
      kinds.push_back(kinds[static_cast<std::size_t>(like)]);
      continue;
    }
    const Place from{data, s}, to{data, (s + 1) % stages};
    kinds.push_back(lanes.over_fabric(from, to) ? lanes.switches_between(from, to) : -1);
  }
  return kinds;
}

/// Replicas that exchange tokens in any stage, side by side; 1: none do. They wait for each other
/// in every layer, so they must all run as many passes.
int replicas_of_block(const StepPlan& plan) {
  const int span = plan.widths.expert_replicas();
  if (span == 1 || plan.placement.data % span != 0) return 1;
  bool any = false;
  for (int d = 0; d < plan.placement.data; ++d) {
    for (int stage = 0; stage < plan.placement.pipeline; ++stage) {
      const StagePlan &own = plan.place(d, stage), &first = plan.place(d / span * span, stage);
      if (own.segments.size() != first.segments.size()) return 1;
      any = any || plan.costs(own.pool).layer(Axis::expert).rate > 0;
    }
    if (plan.variant_of.empty()) break;  // all replicas are alike
  }
  return any ? span : 1;
}

/// Whether there are several groups of the kind that have something to exchange.
bool has_groups(const StepPlan& plan, std::size_t kind) {
  if (plan.stages.front().groups[kind].replicas == plan.placement.data) return false;
  return std::ranges::any_of(plan.stages, [kind](const StagePlan& stage) {
    return std::ranges::any_of(stage.channels, [kind](const DataChannel& c) {
      return static_cast<std::size_t>(c.group) == kind;
    });
  });
}

/// Numbers the colours of `count` vertices from 0, in the order of their first appearance.
std::vector<std::uint32_t> in_order(const std::vector<std::uint32_t>& colours, std::size_t first,
                                    std::size_t count) {
  std::vector<std::uint32_t> number_of(colours.size(), kUnused), numbers(count);
  std::uint32_t known = 0;
  for (std::size_t i = 0; i < count; ++i) {
    std::uint32_t& number = number_of[colours[first + i]];
    if (number == kUnused) number = known++;
    numbers[i] = number;
  }
  return numbers;
}

/// Replicas and links as a graph: a replica's flow that crosses a link is an edge between them.
class Refinement {
 public:
  Refinement(const Scenario& scenario, DataRoutes& data_routes, Lanes& lanes,
             std::span<const FabricLink> apart)
      : plan_(data_routes.plan()),
        data_routes_(data_routes),
        lanes_(lanes),
        routes_(plan_, lanes),
        span_(static_cast<std::size_t>(replicas_of_block(plan_))),
        left_(nic_shares(scenario, lanes.fabric())),
        number_(lanes.fabric().link_count(), kUnused) {
    const auto replicas = static_cast<std::size_t>(plan_.placement.data);
    const Slowdowns slow = slow_replicas(scenario, lanes.placement());
    for (std::size_t d = 0; d < replicas; ++d) {
      const auto data = static_cast<int>(d);
      std::uint64_t hash = plan_.variant(data);
      for (const int kind :
           path_kinds(lanes, data, plan_.placement.pipeline, data_routes.shifts())) {
        hash = mix(hash, static_cast<std::uint64_t>(kind) + 2);
      }
      if (const auto it = slow.find(data); it != slow.end()) {
        for (const double s : it->second) hash = mix(hash, std::bit_cast<std::uint64_t>(s));
      }
      replica_hash_.push_back(hash);
      add_replica(data);
      if (d == 0 && data_routes.layout()) uses_of_all_.reserve(uses_of_all_.size() * replicas);
    }
    number_groups();
    add_data();
    tell_apart(apart);
  }

  ReplicaClasses run(const Slowdowns& slow) {
    const std::size_t replicas = replica_hash_.size(), links = link_hash_.size();
    ColourRefinement refinement{kinds(), edges()};
    // Under ECMP no two replicas may be alike: then links need not be compared.
    refinement.refine(lanes_.comparable() ? 0 : replicas);
    replica_colour_ = in_order(refinement.colours(), 0, replicas);
    link_colour_ = in_order(refinement.colours(), replicas, links);
    group_colour_ = in_order(refinement.colours(), replicas + links, group_hash_.size());
    return result(slow);
  }

 private:
  /// Of the replica at hand: what a stage puts on links.
  struct OfStage {
    int stage = -1;  ///< none yet
    std::vector<RouteHop> uses;
  };
  static void forget(std::vector<OfStage>& stages) {
    for (OfStage& known : stages) known.stage = -1;
  }

  std::uint32_t number(FabricLink link) {
    std::uint32_t& n = number_[link];
    if (n == kUnused) {
      n = static_cast<std::uint32_t>(link_hash_.size());
      const double left = left_.empty() ? 1.0 : left_[link];
      link_hash_.push_back(
          std::bit_cast<std::uint64_t>(left * lanes_.fabric().capacity(link).base_units()));
    }
    return n;
  }

  void add_uses(int replica, std::uint64_t flow) {
    for (const RouteHop& use : uses_) {
      uses_of_all_.push_back({static_cast<std::uint32_t>(replica), number(use.link),
                              mix(flow, std::bit_cast<std::uint64_t>(use.share))});
    }
    uses_.clear();
  }

  /// The flows that Wiring makes for a replica.
  void add_replica(int replica) {
    const int stages = plan_.placement.pipeline;
    const bool wraps = plan_.shape.wraps();
    std::uint64_t flow = 0;
    for (std::vector<OfStage>& of_direction : to_neighbour_) forget(of_direction);
    for (std::vector<OfStage>& of_axis : inside_layers_) forget(of_axis);
    for (int s = 0; s < stages; ++s) {
      for (const int step : {1, -1}) {
        ++flow;
        const int next = s + step;
        if (stages == 1 || (!wraps && (next < 0 || next >= stages))) continue;
        add_to_neighbour(replica, s, next);
        add_uses(replica, flow);
      }
      for (std::size_t axis = 0; axis < kAxes; ++axis) {
        ++flow;
        add_layers(replica, s, axis);
        add_uses(replica, flow);
        add_ports(replica, {replica, s}, static_cast<Axis>(axis));
      }
    }
    for (const StageExchange& exchange : plan_.exchanges) {
      const Place one{replica, static_cast<int>(exchange.stages[0])};
      const Place other{replica, static_cast<int>(exchange.stages[1])};
      add_message(one, other, plan_.connections.ring);
      add_message(other, one, plan_.connections.ring);
      add_uses(replica, ++flow);
    }
  }
  /// Stages that lie alike send alike to the next stage and to the one before.
  void add_to_neighbour(int replica, int stage, int next) {
    const int stages = plan_.placement.pipeline;
    if (next < 0 || next >= stages) {
      add_message({replica, stage}, {replica, (next + stages) % stages}, plan_.connections.message);
      return;
    }
    const StageShifts& shifts = data_routes_.shifts();
    std::vector<OfStage>& of_direction = to_neighbour_[next > stage ? 0 : 1];
    of_direction.resize(static_cast<std::size_t>(stages));
    OfStage& known =
        of_direction[static_cast<std::size_t>(shifts.like_with_next(std::min(stage, next)))];
    if (known.stage < 0) {
      add_message({replica, stage}, {replica, next}, plan_.connections.message);
      known.stage = stage;
      known.uses.assign(uses_.begin(), uses_.end());
      return;
    }
    add_moved(known, stage);
  }
  /// Stages that lie alike exchange alike inside their layers.
  void add_layers(int replica, int stage, std::size_t axis) {
    const StageShifts& shifts = data_routes_.shifts();
    const auto like = static_cast<std::size_t>(shifts.like(stage));
    std::vector<OfStage>& of_axis = inside_layers_[axis];
    of_axis.resize(static_cast<std::size_t>(plan_.placement.pipeline));
    const bool knows = of_axis[like].stage >= 0 && plan_.place(replica, of_axis[like].stage).pool ==
                                                       plan_.place(replica, stage).pool;
    if (!knows) {
      routes_.add({replica, stage}, static_cast<Axis>(axis), uses_);
      of_axis[like].stage = stage;
      of_axis[like].uses.assign(uses_.begin(), uses_.end());
    } else {
      add_moved(of_axis[like], stage);
    }
  }
  void add_moved(const OfStage& known, int stage) {
    for (const RouteHop& use : known.uses) {
      uses_.push_back({data_routes_.shifts().moved(use.link, known.stage, stage), use.share});
    }
  }
  /// Replicas whose GPUs have experts in demand are not like others.
  void add_ports(int replica, Place at, Axis axis) {
    const auto [out, in] = routes_.nvlink_shares(at, axis);
    if (out == 1 && in == 1) return;
    std::uint64_t& hash = replica_hash_[static_cast<std::size_t>(replica)];
    hash = mix(mix(hash, std::bit_cast<std::uint64_t>(out)), std::bit_cast<std::uint64_t>(in));
  }
  void add_message(Place from, Place to, int connections) {
    if (!lanes_.over_fabric(from, to)) return;
    lanes_.add(from, to, connections, false, 1.0, uses_);
  }

  /// Groups of replicas that go on by themselves; kinds of which there is one group have none.
  void number_groups() {
    for (std::size_t kind = 0; kind < kDataGroups; ++kind) {
      first_group_[kind] = kUnused;
      if (!has_groups(plan_, kind)) continue;
      const DataGroup& of_kind = plan_.stages.front().groups[kind];
      first_group_[kind] = static_cast<std::uint32_t>(group_hash_.size());
      group_hash_.resize(
          group_hash_.size() + static_cast<std::size_t>(plan_.placement.data / of_kind.replicas),
          kind);
    }
  }
  [[nodiscard]] std::uint32_t group_at(std::size_t kind, std::size_t replica) const {
    const DataGroup& of_kind = plan_.stages.front().groups[kind];
    return first_group_[kind] +
           static_cast<std::uint32_t>(of_kind.group_of(static_cast<int>(replica)));
  }

  /// What a stage's data-parallel collectives put on a link is part of what the link is, and of
  /// what the group is if there are several.
  void add_data() {
    for (const StagePlan& stage : plan_.stages) {
      std::uint64_t number = static_cast<std::uint64_t>(stage.stage) << 32U;
      for (const DataWay& way : data_ways(stage)) {
        ++number;
        const auto kind = static_cast<std::size_t>(way.first->group);
        if (first_group_[kind] == kUnused) {
          add_way(stage, way, number);
        } else {
          add_way_of_groups(stage, way, number);
        }
      }
    }
  }
  void add_way_of_groups(const StagePlan& stage, const DataWay& way, std::uint64_t id) {
    const auto kind = static_cast<std::size_t>(way.first->group);
    const int groups = plan_.placement.data / stage.groups[kind].replicas;
    for (int g = 0; g < groups; ++g) {
      data_routes_.add(stage, way, g, uses_);
      merge_hops(uses_, 0);
      for (const RouteHop& use : uses_) {
        group_uses_.push_back({first_group_[kind] + static_cast<std::uint32_t>(g), number(use.link),
                               mix(id, std::bit_cast<std::uint64_t>(use.share))});
      }
      uses_.clear();
    }
  }
  void add_way(const StagePlan& stage, const DataWay& way, std::uint64_t id) {
    std::vector<std::pair<std::uint32_t, double>> shares;  // by link
    data_routes_.add(stage, way, kEveryGroup, uses_);
    for (const RouteHop& use : uses_) {
      const std::uint32_t link = number(use.link);
      place_of_link_.resize(link_hash_.size(), kUnused);
      std::uint32_t& place = place_of_link_[link];
      if (place == kUnused) {
        place = static_cast<std::uint32_t>(shares.size());
        shares.emplace_back(link, 0.0);
      }
      shares[place].second += use.share;
    }
    uses_.clear();
    for (const auto& [link, share] : shares) {
      link_hash_[link] = mix(link_hash_[link], mix(id, std::bit_cast<std::uint64_t>(share)));
      place_of_link_[link] = kUnused;
    }
  }

  void tell_apart(std::span<const FabricLink> apart) {
    constexpr std::uint64_t kApart = 0x6170617274;
    for (const FabricLink link : apart) {
      const std::uint32_t known = number_[link];
      if (known != kUnused) link_hash_[known] = mix(mix(link_hash_[known], kApart), link);
    }
  }

  /// Vertices: replicas, links, groups, blocks of replicas.
  [[nodiscard]] std::vector<std::uint64_t> kinds() const {
    enum : std::uint64_t { kReplica, kLink, kGroup, kBlock };
    std::vector<std::uint64_t> kinds;
    kinds.reserve(replica_hash_.size() + link_hash_.size() + group_hash_.size());
    for (const std::uint64_t hash : replica_hash_) kinds.push_back(mix(kReplica, hash));
    for (const std::uint64_t hash : link_hash_) kinds.push_back(mix(kLink, hash));
    for (const std::uint64_t kind : group_hash_) kinds.push_back(mix(kGroup, kind));
    if (span_ > 1) kinds.resize(kinds.size() + replica_hash_.size() / span_, mix(kBlock, 0));
    return kinds;
  }
  [[nodiscard]] std::vector<LabelledEdge> edges() {
    const auto links = static_cast<std::uint32_t>(replica_hash_.size());
    const auto groups = links + static_cast<std::uint32_t>(link_hash_.size());
    const auto blocks = groups + static_cast<std::uint32_t>(group_hash_.size());
    std::vector<LabelledEdge> edges = std::move(uses_of_all_);
    for (LabelledEdge& use : edges) use.other += links;
    for (const LabelledEdge& use : group_uses_) {
      edges.push_back({groups + use.one, links + use.other, use.label});
    }
    for (std::uint32_t d = 0; d < links; ++d) {
      for (std::size_t kind = 0; kind < kDataGroups; ++kind) {
        if (first_group_[kind] != kUnused) edges.push_back({d, groups + group_at(kind, d), kind});
      }
      if (span_ > 1) edges.push_back({d, blocks + d / static_cast<std::uint32_t>(span_), 0});
    }
    return edges;
  }

  [[nodiscard]] ReplicaClasses result(const Slowdowns& slow) {
    ReplicaClasses folding;
    for (std::size_t d = 0; d < replica_colour_.size(); ++d) {
      const auto data = static_cast<int>(d);
      if (replica_colour_[d] < folding.classes.size()) {
        ++folding.classes[replica_colour_[d]].copies;
        continue;
      }
      const auto it = slow.find(data);
      folding.classes.push_back({data,
                                 1,
                                 it == slow.end() ? std::vector<double>{} : it->second,
                                 plan_.variant(data),
                                 kNoBlock,
                                 {}});
      for (std::size_t kind = 0; kind < kDataGroups; ++kind) {
        if (first_group_[kind] == kUnused) continue;
        folding.classes.back().data_group[kind] = group_at(kind, d);
      }
    }
    if (span_ > 1) number_blocks(folding.classes);
    // Replicas all on their own were not compared, nor were links and groups.
    if (!lanes_.comparable() && folding.classes.size() == replica_colour_.size()) return folding;
    for (ReplicaClass& c : folding.classes) {
      for (std::size_t kind = 0; kind < kDataGroups; ++kind) {
        if (first_group_[kind] != kUnused) c.data_group[kind] = group_colour_[c.data_group[kind]];
      }
    }
    folding.links.of = std::move(number_);
    if (!link_colour_.empty()) {
      folding.links.links.resize(1 + std::size_t{*std::ranges::max_element(link_colour_)});
    }
    for (std::uint32_t& of : folding.links.of) {
      if (of == kUnused) continue;
      of = link_colour_[of];
      ++folding.links.links[of];
    }
    return folding;
  }

  /// Blocks are as alike as their replicas: a class is in blocks of one kind.
  void number_blocks(std::vector<ReplicaClass>& classes) const {
    for (ReplicaClass& c : classes) {
      const std::size_t first = static_cast<std::size_t>(c.representative) / span_ * span_;
      c.block =
          *std::min_element(replica_colour_.begin() + static_cast<std::ptrdiff_t>(first),
                            replica_colour_.begin() + static_cast<std::ptrdiff_t>(first + span_));
    }
  }

  const StepPlan& plan_;
  DataRoutes& data_routes_;
  Lanes& lanes_;
  LayerRoutes routes_;
  std::size_t span_;                   ///< replicas of a block
  std::vector<double> left_;           ///< of each fabric link's capacity; empty: all of it
  std::vector<std::uint32_t> number_;  ///< by fabric link: among those used
  /// Of replicas and links: which flow of the replica crosses the link, and its share.
  std::vector<LabelledEdge> uses_of_all_;
  std::array<std::uint32_t, kDataGroups> first_group_{};
  /// Of groups and links: what the group's collectives put on the link.
  std::vector<LabelledEdge> group_uses_;
  std::vector<RouteHop> uses_;
  std::array<std::vector<OfStage>, 2> to_neighbour_;       ///< by direction and like_with_next()
  std::array<std::vector<OfStage>, kAxes> inside_layers_;  ///< by axis and like()
  std::vector<std::uint32_t> place_of_link_;  ///< among those that a way of collectives uses
  std::vector<std::uint64_t> replica_hash_, link_hash_, group_hash_;
  std::vector<std::uint32_t> replica_colour_, link_colour_, group_colour_;
};

/// The collectives of a stage that put the same on the same links.
struct WayOfStage {
  DataGroupKind group;
  GroupLayout layout;
  bool is_ring;
  CollectiveOp op;
  std::string algorithm;
  int channels;  ///< CollectiveCost::channels

  friend auto operator<=>(const WayOfStage&, const WayOfStage&) = default;
};

/// All that an exact folding depends on where does_fold_by_layout() holds.
struct FoldingKey {
  SprayedLayout layout;
  /// Which links of NICs, leaves and spines have the same capacity. How much it is does not matter.
  std::array<bool, 3> as_fast{};
  int ring_connections = 1, message_connections = 1;
  bool wraps = false;  ///< the pipeline
  int span = 1;        ///< replicas_of_block()
  std::array<bool, kDataGroups> has_groups{};
  std::array<GroupLayout, kDataGroups> groups{};
  std::vector<std::array<std::uint32_t, 2>> exchanges;  ///< stages of each
  std::vector<std::vector<WayOfStage>> ways;            ///< by stage

  friend auto operator<=>(const FoldingKey&, const FoldingKey&) = default;
};

std::array<bool, 3> equal_capacities(const Fabric& fabric) {
  const FabricCounts& counts = fabric.counts();
  const BytesPerSecond nic = fabric.capacity(fabric.nic_up(0, 0));
  const BytesPerSecond leaf =
      counts.leaf_uplinks > 0 ? fabric.capacity(fabric.leaf_up(0, 0)) : BytesPerSecond{};
  const BytesPerSecond spine =
      counts.spine_uplinks > 0 ? fabric.capacity(fabric.spine_up(0, 0, 0)) : BytesPerSecond{};
  return {nic == leaf, nic == spine, leaf == spine};
}

/// Whether where the ranks lie decides everything: all replicas have the same plan, none has a slow
/// GPU, all nodes are alike, and nothing inside layers leaves its node or loads one rank more.
bool does_fold_by_layout(const Scenario& scenario, const StepPlan& plan, const Slowdowns& slow) {
  return slow.empty() && scenario.pools.empty() && plan.variant_of.empty() &&
         std::ranges::none_of(plan.layers, [](const LayerTransfer& transfer) {
           return transfer.network_share > 0 || transfer.is_skewed();
         });
}

FoldingKey folding_key(const StepPlan& plan, const Fabric& fabric, const SprayedLayout& layout) {
  FoldingKey key{.layout = layout,
                 .as_fast = equal_capacities(fabric),
                 .ring_connections = plan.connections.ring,
                 .message_connections = plan.connections.message,
                 .wraps = plan.shape.wraps(),
                 .span = replicas_of_block(plan),
                 .has_groups = {},
                 .groups = {},
                 .exchanges = {},
                 .ways = {}};
  for (std::size_t kind = 0; kind < kDataGroups; ++kind) {
    key.has_groups[kind] = has_groups(plan, kind);
    key.groups[kind] = layout_of(plan.stages.front().groups[kind]);
  }
  for (const StageExchange& exchange : plan.exchanges) key.exchanges.push_back(exchange.stages);
  for (const StagePlan& stage : plan.stages) {
    std::vector<WayOfStage>& ways = key.ways.emplace_back();
    for (const DataWay& way : data_ways(stage)) {
      ways.push_back({.group = way.first->group,
                      .layout = layout_of(stage.groups[static_cast<std::size_t>(way.first->group)]),
                      .is_ring = way.is_ring,
                      .op = way.first->op,
                      .algorithm = std::string(way.first->cost.algorithm),
                      .channels = way.first->cost.channels});
    }
  }
  return key;
}

std::size_t bytes_of_folding(const FoldingKey& key, const ReplicaClasses& folding) {
  std::size_t ways = key.ways.capacity() * sizeof(std::vector<WayOfStage>);
  for (const std::vector<WayOfStage>& stage : key.ways) {
    ways += stage.capacity() * sizeof(WayOfStage);
    for (const WayOfStage& way : stage) ways += way.algorithm.capacity();
  }
  return sizeof key + key.exchanges.capacity() * sizeof key.exchanges[0] + ways +
         folding.classes.capacity() * sizeof(ReplicaClass) +
         (folding.links.of.capacity() + folding.links.links.capacity()) * sizeof(std::uint32_t);
}

SharedMemo<FoldingKey, ReplicaClasses>& known_foldings() {
  constexpr std::size_t kMostBytes = std::size_t{32} << 20U;
  static SharedMemo<FoldingKey, ReplicaClasses> known(kMostBytes, bytes_of_folding);
  return known;
}

/// Classes of equal slow GPUs and equal path lengths; slow replicas on their own.
std::vector<ReplicaClass> classes_by_length(const StepPlan& plan, const Slowdowns& slow,
                                            const Lanes& lanes, bool unfold) {
  const int span = unfold ? replicas_of_block(plan) : 1;
  std::vector<ReplicaClass> classes;
  std::map<std::pair<std::uint32_t, std::vector<int>>, std::size_t> by_path;
  for (int data = 0; data < plan.placement.data; ++data) {
    const auto it = slow.find(data);
    if (unfold || it != slow.end()) {
      classes.push_back({data,
                         1,
                         it == slow.end() ? std::vector<double>{} : it->second,
                         plan.variant(data),
                         span > 1 ? static_cast<std::uint32_t>(data / span) : kNoBlock,
                         {}});
      for (std::size_t kind = 0; unfold && kind < kDataGroups; ++kind) {
        if (!has_groups(plan, kind)) continue;
        classes.back().data_group[kind] =
            static_cast<std::uint32_t>(plan.stages.front().groups[kind].group_of(data));
      }
      continue;
    }
    const auto [place, is_new] = by_path.try_emplace(
        {plan.variant(data), path_kinds(lanes, data, plan.placement.pipeline)}, classes.size());
    if (is_new) {
      classes.push_back({data, 1, {}, plan.variant(data), kNoBlock, {}});
    } else {
      ++classes[place->second].copies;
    }
  }
  return classes;
}

}  // namespace

ReplicaClasses classes_of_replicas(const Scenario& scenario, DataRoutes& data_routes,
                                   Folding folding, std::span<const FabricLink> apart) {
  const StepPlan& plan = data_routes.plan();
  Lanes& lanes = data_routes.lanes();
  const Slowdowns slow = slow_replicas(scenario, lanes.placement());
  const bool by_length = folding == Folding::folded && !lanes.comparable();
  if (folding == Folding::unfolded || by_length) {
    return {.classes = classes_by_length(plan, slow, lanes, !by_length), .links = {}};
  }
  const auto refine = [&] { return Refinement{scenario, data_routes, lanes, apart}.run(slow); };
  const std::optional<SprayedLayout>& layout = data_routes.layout();
  if (!layout || !apart.empty() || !does_fold_by_layout(scenario, plan, slow)) return refine();
  return *known_foldings().get(folding_key(plan, data_routes.fabric(), *layout), refine);
}

}  // namespace lockstep
