#include "sim/step/replica_classes.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <map>
#include <unordered_map>
#include <utility>

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
std::vector<int> path_kinds(const Lanes& lanes, int data, int stages) {
  std::vector<int> kinds;
  for (int s = 0; stages > 1 && s < stages; ++s) {
    const Place from{data, s}, to{data, (s + 1) % stages};
    kinds.push_back(lanes.over_fabric(from, to) ? lanes.switches_between(from, to) : -1);
  }
  return kinds;
}

/// Finalizer of SplitMix64: Steele, Lea and Flood 2014, OOPSLA, figure 14.
constexpr std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}
constexpr std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  return mix(mix(a + 0x9e3779b97f4a7c15ULL) ^ b);
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

/// Numbers hashes from 0 in the order of their first appearance.
template <class Colours>
std::uint32_t renumber(const std::vector<std::uint64_t>& hashes, Colours& colours) {
  std::unordered_map<std::uint64_t, std::uint32_t> known;
  for (std::size_t i = 0; i < hashes.size(); ++i) {
    colours[i] =
        known.try_emplace(hashes[i], static_cast<std::uint32_t>(known.size())).first->second;
  }
  return static_cast<std::uint32_t>(known.size());
}

/// Replicas and links as a graph: a replica's flow that crosses a link is an edge between them.
class Refinement {
 public:
  Refinement(const Scenario& scenario, DataRoutes& data_routes, Lanes& lanes)
      : plan_(data_routes.plan()),
        data_routes_(data_routes),
        lanes_(lanes),
        routes_(plan_, lanes),
        span_(static_cast<std::size_t>(replicas_of_block(plan_))),
        left_(nic_shares(scenario, lanes.fabric())),
        efficiency_(scenario.transport.efficiency),
        number_(lanes.fabric().link_count(), kUnused) {
    const auto replicas = static_cast<std::size_t>(plan_.placement.data);
    const Slowdowns slow = slow_replicas(scenario, lanes.placement());
    for (std::size_t d = 0; d < replicas; ++d) {
      const auto data = static_cast<int>(d);
      std::uint64_t hash = plan_.variant(data);
      for (const int kind : path_kinds(lanes, data, plan_.placement.pipeline)) {
        hash = mix(hash, static_cast<std::uint64_t>(kind) + 2);
      }
      if (const auto it = slow.find(data); it != slow.end()) {
        for (const double s : it->second) hash = mix(hash, std::bit_cast<std::uint64_t>(s));
      }
      replica_hash_.push_back(hash);
      add_replica(data);
    }
    number_groups();
    add_data();
    replica_colour_.resize(replicas);
    link_colour_.resize(link_hash_.size());
  }

  ReplicaClasses run(const Slowdowns& slow) {
    std::uint32_t replicas = renumber(replica_hash_, replica_colour_);
    std::uint32_t links = renumber(link_hash_, link_colour_);
    std::uint32_t groups = renumber(group_hash_, group_colour_);
    while (!alone(replicas)) {
      refine();
      const std::uint32_t more_replicas = renumber(replica_hash_, replica_colour_);
      const std::uint32_t more_links = renumber(link_hash_, link_colour_);
      const std::uint32_t more_groups = renumber(group_hash_, group_colour_);
      if (more_replicas == replicas && more_links == links && more_groups == groups) break;
      replicas = more_replicas;
      links = more_links;
      groups = more_groups;
    }
    return result(slow, replicas, links);
  }

 private:
  struct Use {
    std::uint32_t replica, link;
    std::uint64_t what;  ///< which flow of the replica, and its share
  };

  /// What a group's collectives put on a link.
  struct GroupUse {
    std::uint32_t group, link;
    std::uint64_t what;
  };

  std::uint32_t number(FabricLink link) {
    std::uint32_t& n = number_[link];
    if (n == kUnused) {
      n = static_cast<std::uint32_t>(link_hash_.size());
      double left = left_.empty() ? 1.0 : left_[link];
      if (!lanes_.fabric().joins_nic(link)) left *= efficiency_;
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
    for (int s = 0; s < stages; ++s) {
      for (const int step : {1, -1}) {
        ++flow;
        const int next = s + step;
        if (stages == 1 || (!wraps && (next < 0 || next >= stages))) continue;
        add_message({replica, s}, {replica, (next + stages) % stages}, plan_.connections.message);
        add_uses(replica, flow);
      }
      for (std::size_t axis = 0; axis < kAxes; ++axis) {
        ++flow;
        routes_.add({replica, s}, static_cast<Axis>(axis), uses_);
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
    group_colour_.resize(group_hash_.size());
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
    std::map<std::uint32_t, double> shares;
    data_routes_.add(stage, way, kEveryGroup, uses_);
    for (const RouteHop& use : uses_) shares[number(use.link)] += use.share;
    uses_.clear();
    for (const auto& [link, share] : shares) {
      link_hash_[link] = mix(link_hash_[link], mix(id, std::bit_cast<std::uint64_t>(share)));
    }
  }

  void refine() {
    for (std::size_t first = 0; first < replica_hash_.size(); first += span_) {
      std::uint64_t block = 0;
      for (std::size_t i = first; i < first + span_; ++i) block += mix(replica_colour_[i]);
      for (std::size_t i = first; i < first + span_; ++i) {
        replica_hash_[i] = mix(replica_colour_[i]) + (span_ > 1 ? mix(block) : 0);
      }
    }
    for (std::size_t i = 0; i < link_hash_.size(); ++i) link_hash_[i] = mix(link_colour_[i]);
    for (const Use& use : uses_of_all_) {
      replica_hash_[use.replica] += mix(use.what, link_colour_[use.link]);
      link_hash_[use.link] += mix(use.what, replica_colour_[use.replica]);
    }
    refine_groups();
  }
  void refine_groups() {
    for (std::size_t g = 0; g < group_hash_.size(); ++g) group_hash_[g] = mix(group_colour_[g]);
    for (std::size_t kind = 0; kind < kDataGroups; ++kind) {
      if (first_group_[kind] == kUnused) continue;
      for (std::size_t d = 0; d < replica_hash_.size(); ++d) {
        const std::uint32_t group = group_at(kind, d);
        group_hash_[group] += mix(replica_colour_[d]);
        replica_hash_[d] += mix(kind, group_colour_[group]);
      }
    }
    for (const GroupUse& use : group_uses_) {
      group_hash_[use.group] += mix(use.what, link_colour_[use.link]);
      link_hash_[use.link] += mix(use.what, group_colour_[use.group]);
    }
  }

  /// Under ECMP no two replicas may be alike: then links need not be compared.
  [[nodiscard]] bool alone(std::uint32_t classes) const {
    return !lanes_.comparable() && classes == replica_colour_.size();
  }

  [[nodiscard]] ReplicaClasses result(const Slowdowns& slow, std::uint32_t replicas,
                                      std::uint32_t links) const {
    ReplicaClasses folding;
    folding.classes.reserve(replicas);
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
        // Alone, replicas were not compared, nor were groups.
        const std::uint32_t group = group_at(kind, d);
        folding.classes.back().data_group[kind] = alone(replicas) ? group : group_colour_[group];
      }
    }
    if (span_ > 1) number_blocks(folding.classes);
    if (alone(replicas)) return folding;
    folding.links.of = number_;
    folding.links.links.assign(links, 0);
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
  double efficiency_;                  ///< of links between switches
  std::vector<std::uint32_t> number_;  ///< by fabric link: among those used
  std::vector<Use> uses_of_all_;
  std::array<std::uint32_t, kDataGroups> first_group_{};
  std::vector<GroupUse> group_uses_;
  std::vector<RouteHop> uses_;
  std::vector<std::uint64_t> replica_hash_, link_hash_, group_hash_;
  std::vector<std::uint32_t> replica_colour_, link_colour_, group_colour_;
};

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
                                   Folding folding) {
  const StepPlan& plan = data_routes.plan();
  Lanes lanes{plan, data_routes.fabric()};
  const Slowdowns slow = slow_replicas(scenario, lanes.placement());
  const bool by_length = folding == Folding::folded && !lanes.comparable();
  if (folding == Folding::unfolded || by_length) {
    return {.classes = classes_by_length(plan, slow, lanes, !by_length), .links = {}};
  }
  return Refinement{scenario, data_routes, lanes}.run(slow);
}

}  // namespace lockstep
