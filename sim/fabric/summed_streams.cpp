#include "sim/fabric/summed_streams.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "topologies/graph/cluster_graph.hpp"

namespace lockstep {
namespace {

/// What a switch passes on of a rail: as much as the member that sends most.
struct Sum {
  double bytes = 0;
  std::vector<int> members{};
  void add(double more, const std::vector<int>& of) {
    bytes = std::max(bytes, more);
    members.insert(members.end(), of.begin(), of.end());
  }
};
/// By switch: a leaf, the spines of a pod, or a vertex.
using Sums = std::map<int, Sum>;

bool is_spread(const Sums& sums) { return sums.size() > 1; }

/// The leaf of a member's rail, as summed_streams() counts switches.
int leaf_of(const Fabric& fabric, const FabricMember& member) {
  if (!fabric.is_drawn()) return fabric.leaf_of(member.node, member.nic);
  const ClusterGraph& graph = *fabric.graph();
  return static_cast<int>(graph.target()[fabric.nic_up(member.node, member.nic)]);
}

void add_whole_tree(const Fabric& fabric, int rail, const Sums& leaves,
                    std::vector<SummedStream>& out) {
  const FabricCounts& counts = fabric.counts();
  Sums pods;
  const int uplink = rail % counts.leaf_uplinks;
  for (const auto& [leaf, sum] : leaves) {
    out.push_back({fabric.leaf_up(leaf, uplink), sum.bytes, sum.members});
    out.push_back({fabric.leaf_down(leaf, uplink), sum.bytes, sum.members});
    pods[fabric.pod_of(leaf)].add(sum.bytes, sum.members);
  }
  if (!is_spread(pods)) return;
  const int spine = rail % counts.spines, spine_uplink = rail % counts.spine_uplinks;
  for (const auto& [pod, sum] : pods) {
    out.push_back({fabric.spine_up(pod, spine, spine_uplink), sum.bytes, sum.members});
    out.push_back({fabric.spine_down(pod, spine, spine_uplink), sum.bytes, sum.members});
  }
}

/// The trees of a drawn fabric's rails, one after another.
class DrawnTrees {
 public:
  explicit DrawnTrees(const Fabric& fabric) : graph_(*fabric.graph()) {
    for (const GraphVertex& v : graph_.vertices()) top_ = std::max(top_, v.level);
  }

  /// The streams of one rail; nothing where no switch is above all leaves.
  [[nodiscard]] std::optional<std::vector<SummedStream>> add(const Sums& leaves) {
    if (!is_spread(leaves)) return std::vector<SummedStream>{};
    const auto first = static_cast<Vertex>(leaves.begin()->first);
    for (int level = 2; level <= top_; ++level) {
      std::vector<Vertex> roots;
      add_above(first, level, roots);
      for (const Vertex root : roots) {
        const Below below = below_of(root);
        const bool above_all = std::ranges::all_of(leaves, [&below](const auto& leaf) {
          return below.contains(static_cast<Vertex>(leaf.first));
        });
        if (above_all) return streams(root, leaves, below);
      }
    }
    return std::nullopt;
  }

 private:
  /// The switches below a root, with it.
  using Below = std::set<Vertex>;

  [[nodiscard]] int level(Vertex v) const { return graph_.vertices()[v].level; }
  [[nodiscard]] int streams_on(GraphLink link) const {
    const auto known = streams_on_.find(link);
    return known == streams_on_.end() ? 0 : known->second;
  }
  /// Of switches, between layers.
  template <class Use>
  void for_each_link(Vertex v, bool up, Use use) const {
    for (GraphLink i = graph_.first_link()[v]; i < graph_.first_link()[v + 1]; ++i) {
      const Vertex next = graph_.target()[i];
      if (next < graph_.port_count() || level(next) == level(v)) continue;
      if ((level(next) > level(v)) == up) use(i, next);
    }
  }

  /// The switches of a level above, those first to which the cables with the fewest trees lead.
  void add_above(Vertex v, int of_level, std::vector<Vertex>& out) const {
    if (level(v) == of_level) {
      if (std::ranges::find(out, v) == out.end()) out.push_back(v);
      return;
    }
    std::vector<std::pair<int, Vertex>> next;
    for_each_link(v, true, [&](GraphLink link, Vertex above) {
      if (level(above) <= of_level) next.emplace_back(streams_on(link), above);
    });
    std::ranges::sort(next);
    for (const auto& [streams, above] : next) add_above(above, of_level, out);
  }

  [[nodiscard]] Below below_of(Vertex root) const {
    Below out{root};
    std::vector<Vertex> open{root};
    while (!open.empty()) {
      const Vertex v = open.back();
      open.pop_back();
      for_each_link(v, false, [&](GraphLink /*link*/, Vertex next) {
        if (out.insert(next).second) open.push_back(next);
      });
    }
    return out;
  }

  /// The cable to the lowest switch above that leads to the root; of parallel ones that with the
  /// fewest trees.
  [[nodiscard]] GraphLink up_from(Vertex v, const Below& below) const {
    std::optional<std::pair<std::pair<Vertex, int>, GraphLink>> best;
    for_each_link(v, true, [&](GraphLink link, Vertex above) {
      if (!below.contains(above)) return;
      const std::pair at{std::pair{above, streams_on(link)}, link};
      if (!best || at < *best) best = at;
    });
    return best.value().second;
  }

  [[nodiscard]] std::vector<SummedStream> streams(Vertex root, const Sums& leaves,
                                                  const Below& below) {
    std::vector<SummedStream> out;
    std::map<std::pair<int, Vertex>, Sum> open;  // by level
    for (const auto& [leaf, sum] : leaves) {
      const auto v = static_cast<Vertex>(leaf);
      open[{level(v), v}].add(sum.bytes, sum.members);
    }
    while (open.begin()->first.second != root) {
      const auto [at, sum] = *open.begin();
      open.erase(open.begin());
      const GraphLink up = up_from(at.second, below);
      ++streams_on_[up];
      out.push_back({up, sum.bytes, sum.members});
      out.push_back({graph_.reverse(up), sum.bytes, sum.members});
      const Vertex parent = graph_.target()[up];
      open[{level(parent), parent}].add(sum.bytes, sum.members);
    }
    return out;
  }

  const ClusterGraph& graph_;
  int top_ = 0;  ///< the highest level
  std::map<GraphLink, int> streams_on_;
};

}  // namespace

std::vector<SummedStream> summed_streams(const Fabric& fabric,
                                         const std::vector<NetworkEdge>& edges,
                                         std::span<const FabricMember> members) {
  std::map<int, Sums> rails;
  for (const NetworkEdge& edge : edges) {
    if (edge.to != kSwitch) continue;
    const FabricMember& member = members[static_cast<std::size_t>(edge.from)];
    rails[member.nic][leaf_of(fabric, member)].add(edge.bytes, {edge.from});
  }
  std::vector<SummedStream> out;
  std::optional<DrawnTrees> trees;
  if (fabric.is_drawn() && !rails.empty()) trees.emplace(fabric);
  for (const auto& [rail, leaves] : rails) {
    if (!is_spread(leaves)) continue;
    if (!trees) {
      add_whole_tree(fabric, rail, leaves, out);
      continue;
    }
    const std::vector<SummedStream> own = trees->add(leaves).value();
    out.insert(out.end(), own.begin(), own.end());
  }
  return out;
}

bool has_sum_trees(const Fabric& fabric, std::span<const FabricMember> members) {
  if (!fabric.is_drawn()) return true;
  std::map<int, Sums> rails;
  for (const FabricMember& member : members) rails[member.nic][leaf_of(fabric, member)];
  DrawnTrees trees(fabric);
  return std::ranges::all_of(
      rails, [&trees](const auto& rail) { return trees.add(rail.second).has_value(); });
}

bool has_sum_trees(const Fabric& fabric, int nodes) {
  std::vector<FabricMember> members;
  for (int node = 0; node < nodes; ++node) {
    for (int nic = 0; nic < fabric.nics_per_node(); ++nic) {
      members.push_back({.place = {node, nic}, .node = node, .nic = nic});
    }
  }
  return has_sum_trees(fabric, members);
}

}  // namespace lockstep
