#include "topologies/infiniband/fat_tree.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <optional>
#include <set>

namespace lockstep {
namespace {

// FAT_TREE_MIN_RANK and FAT_TREE_MAX_RANK.
constexpr std::uint32_t kFewestLayers = 2;
constexpr std::uint32_t kMostLayers = 8;

class Finder {
 public:
  Finder(const SwitchFabric& fabric, std::span<const Vertex> roots)
      : fabric_(fabric), roots_given_(!roots.empty()) {
    tree_.switches.resize(fabric.switches());
    for (const Vertex root : roots) {
      if (fabric.switch_at(root) != kNoSwitch) roots_.push_back(fabric.switch_at(root));
    }
  }

  FatTree find() {
    tree_.refusal = refusal();
    return std::move(tree_);
  }

 private:
  std::string refusal() {
    if (fabric_.switches() < 2) return "fewer than two switches";
    const auto ends = adapters();
    const auto guid = [&](const auto& end) {
      return fabric_.subnet().vertices[end.first].node_guid;
    };
    if (ends.empty() || guid(ends.front()) == guid(ends.back())) return "fewer than two adapters";
    if (roots_.empty()) {
      rank_from_adapters();
      for (SwitchIndex s = 0; s < fabric_.switches(); ++s) {
        if (at(s).rank == 0) roots_.push_back(s);
      }
    }
    for (TreeSwitch& s : tree_.switches) s.rank = TreeSwitch::kNoRank;
    last_rank_ = rank_from(roots_);
    if (last_rank_ == 0) return "all switches are in one layer";
    for (SwitchIndex s = 0; s < fabric_.switches(); ++s) bundle(s);
    if (const auto why = mark_leaves()) return *why;
    if (leaf_rank_ + 1 < kFewestLayers || leaf_rank_ + 1 > kMostLayers) {
      return fmt::format("{} layers of switches, not {} to {}", leaf_rank_ + 1, kFewestLayers,
                         kMostLayers);
    }
    give_indexes();
    if (const auto why = list_leaves()) return *why;
    return roots_given_ ? "" : unevenness();
  }

  TreeSwitch& at(SwitchIndex s) { return tree_.switches[s]; }
  [[nodiscard]] std::string name(SwitchIndex s) const {
    return fabric_.subnet().graph.vertex_name(fabric_.vertex(s));
  }

  /// End ports on switches, in opensm's order of their boxes' GUIDs.
  [[nodiscard]] std::vector<std::pair<Vertex, SwitchIndex>> adapters() const {
    std::vector<std::pair<Vertex, SwitchIndex>> out;
    const auto& vertices = fabric_.subnet().vertices;
    for (SwitchIndex s = 0; s < fabric_.switches(); ++s) {
      for (const SwitchPort& port : fabric_.ports(s)) {
        if (!port.leads_to_end_port()) continue;
        if (vertices[port.end_port].kind == InfinibandKind::adapter) {
          out.emplace_back(port.end_port, s);
        }
      }
    }
    std::ranges::stable_sort(out, {}, [&](const auto& end) {
      return std::pair{opensm_order(vertices[end.first].node_guid), vertices[end.first].port};
    });
    return out;
  }

  /// Layers from the adapters, then turned over. Returns through the ranks.
  void rank_from_adapters() {
    std::vector<SwitchIndex> leaves;
    std::set<SwitchIndex> seen;
    for (const auto& [end, s] : adapters()) {
      if (seen.insert(s).second) leaves.push_back(s);
    }
    const std::uint32_t last = rank_from(leaves);
    for (TreeSwitch& s : tree_.switches) {
      if (s.ranked()) s.rank = last - s.rank;
    }
  }

  std::uint32_t rank_from(std::vector<SwitchIndex> queue) {
    std::uint32_t last = 0;
    for (const SwitchIndex s : queue) at(s).rank = 0;
    for (std::size_t next = 0; next < queue.size(); ++next) {
      for (const SwitchPort& port : fabric_.ports(queue[next])) {
        if (!port.leads_to_switch() || at(port.far_switch).ranked()) continue;
        last = at(port.far_switch).rank = at(queue[next]).rank + 1;
        queue.push_back(port.far_switch);
      }
    }
    return last;
  }

  void bundle(SwitchIndex s) {
    if (!at(s).ranked()) return;
    const auto& ports = fabric_.ports(s);
    for (std::size_t p = 1; p < ports.size(); ++p) {
      const SwitchPort& port = ports[p];
      if (!port.cabled) continue;
      const bool to_switch = port.leads_to_switch();
      const auto kind = fabric_.subnet().vertices[port.end_port].kind;
      if (!to_switch && kind != InfinibandKind::adapter) continue;
      const bool up = to_switch && at(s).rank > at(port.far_switch).rank;
      const bool same = to_switch && at(s).rank == at(port.far_switch).rank;
      auto& bundles = up ? at(s).up : same ? at(s).sideways : at(s).down;
      auto found = std::ranges::find_if(bundles, [&](const TreeBundle& b) {
        return b.far == port.far_switch && b.end_port == port.end_port;
      });
      if (found == bundles.end()) {
        bundles.push_back({.far = port.far_switch, .end_port = port.end_port, .cables = {}});
        found = bundles.end() - 1;
      }
      found->cables.push_back({.port = static_cast<std::uint8_t>(p), .far_port = port.far_port});
    }
  }

  /// Switches with adapters have to be in one layer: the lowest, or, with roots given, that of the
  /// first adapter.
  std::optional<std::string> mark_leaves() {
    leaf_rank_ = last_rank_;
    bool first = true;
    for (const auto& [end, s] : adapters()) {
      if (!at(s).ranked()) continue;
      if (first && roots_given_) leaf_rank_ = at(s).rank;
      first = false;
      at(s).is_leaf = true;
      if (at(s).rank != leaf_rank_) {
        return fmt::format("{} has adapters in layer {} from the roots, others in layer {}",
                           name(s), at(s).rank, leaf_rank_);
      }
    }
    if (first) return "no adapter is below a root";
    return std::nullopt;
  }

  /// fabric_make_indexing(): from the first leaf on, switch by switch; the next free number at the
  /// layer that the step crosses.
  void give_indexes() {
    SwitchIndex first = 0;
    while (!at(first).is_leaf) ++first;
    TreeIndex index{255, 255, 255, 255, 255, 255, 255, 255};
    std::fill_n(index.begin(), leaf_rank_ + 1, std::uint8_t{0});
    index[0] = static_cast<std::uint8_t>(at(first).rank);
    give(first, index);
    std::vector<SwitchIndex> queue{first};
    for (std::size_t next = 0; next < queue.size(); ++next) {
      TreeSwitch& here = at(queue[next]);
      if (here.rank < leaf_rank_) {
        visit(here.index, here.down, true, queue);
        sort(here.down);
      }
      if (here.rank != 0) {
        visit(here.index, here.up, false, queue);
        sort(here.up);
      }
    }
  }

  void visit(const TreeIndex& from, const std::vector<TreeBundle>& bundles, bool down,
             std::vector<SwitchIndex>& queue) {
    for (const TreeBundle& bundle : bundles) {
      if (bundle.far == kNoSwitch || at(bundle.far).index[0] != 255) continue;
      TreeIndex index = from;
      index[0] = static_cast<std::uint8_t>(down ? from[0] + 1 : from[0] - 1);
      const std::size_t step = down ? from[0] + 1U : from[0];
      index[step] = 0;
      while (index[step] < 255 && taken_.contains(index)) ++index[step];
      if (index[step] < 255) give(bundle.far, index);
      queue.push_back(bundle.far);
    }
  }

  void give(SwitchIndex s, const TreeIndex& index) {
    at(s).index = index;
    taken_.insert(index);
  }

  void sort(std::vector<TreeBundle>& bundles) {
    std::ranges::stable_sort(bundles, {}, [&](const TreeBundle& b) { return at(b.far).index; });
  }

  std::optional<std::string> list_leaves() {
    auto& leaves = tree_.leaves;
    for (SwitchIndex s = 0; s < fabric_.switches(); ++s) {
      if (at(s).rank == leaf_rank_) leaves.push_back(s);
    }
    std::ranges::stable_sort(leaves, {}, [&](SwitchIndex s) { return at(s).index; });
    const auto is_leaf = [&](SwitchIndex s) { return at(s).is_leaf; };
    leaves.erase(leaves.begin(), std::ranges::find_if(leaves, is_leaf));
    while (!leaves.empty() && !is_leaf(leaves.back())) leaves.pop_back();
    if (leaves.size() < 2) return "fewer than two switches have adapters";
    for (const SwitchIndex s : leaves) {
      const auto ends = std::ranges::count(at(s).down, kNoSwitch, &TreeBundle::far);
      tree_.most_end_ports = std::max(tree_.most_end_ports, static_cast<std::size_t>(ends));
    }
    return std::nullopt;
  }

  /// fabric_validate_topology(): switches of a layer are alike; only adapters may be missing.
  std::string unevenness() {
    std::vector<SwitchIndex> like(leaf_rank_ + 1, kNoSwitch);
    for (SwitchIndex s = 0; s < fabric_.switches(); ++s) {
      if (!at(s).ranked()) continue;
      SwitchIndex& first = like[at(s).rank];
      if (first == kNoSwitch) first = s;
      const TreeSwitch &x = at(first), &y = at(s);
      if (x.up.size() != y.up.size()) {
        return fmt::format("{} has {} switches above it, {} has {}", name(first), x.up.size(),
                           name(s), y.up.size());
      }
      const bool is_low = y.rank == leaf_rank_;
      if (!is_low && x.down.size() != y.down.size()) {
        return fmt::format("{} has {} switches below it, {} has {}", name(first), x.down.size(),
                           name(s), y.down.size());
      }
      for (const TreeBundle& bundle : y.up) {
        if (bundle.cables.size() != x.up[0].cables.size()) return uneven(first, x.up[0], s, bundle);
      }
      // opensm looks at the first bundle below only.
      if (!is_low && !y.down.empty() && y.down[0].cables.size() != x.down[0].cables.size()) {
        return uneven(first, x.down[0], s, y.down[0]);
      }
    }
    return "";
  }

  std::string uneven(SwitchIndex a, const TreeBundle& x, SwitchIndex b, const TreeBundle& y) const {
    const auto cables = [](std::size_t n) {
      return fmt::format("{} cable{}", n, n == 1 ? "" : "s");
    };
    return fmt::format("{} has {} to {}, {} has {} to {}", name(a), cables(x.cables.size()),
                       name(x.far), name(b), cables(y.cables.size()), name(y.far));
  }

  const SwitchFabric& fabric_;
  bool roots_given_;
  std::vector<SwitchIndex> roots_;
  FatTree tree_;
  std::uint32_t last_rank_ = 0;
  std::uint32_t leaf_rank_ = 0;
  std::set<TreeIndex> taken_;
};

}  // namespace

FatTree find_fat_tree(const SwitchFabric& fabric, std::span<const Vertex> roots) {
  return Finder(fabric, roots).find();
}

}  // namespace lockstep
