#include <algorithm>

#include "topologies/infiniband/fat_tree.hpp"

namespace lockstep {
namespace {

/// Routes one destination after the other. Packets for it go down one main way, found by climbing
/// from its leaf over the cables with the fewest such ways; from every switch on the climb all that
/// lies below is routed up to it; then the switches off the main way are routed to it as well.
/// The two climbs call each other as fabric_route_downgoing_by_going_up() and
/// fabric_route_upgoing_by_going_down() do: the order of their steps decides the tables.
class TreeRouter {
 public:
  TreeRouter(const SwitchFabric& fabric, FatTree& tree)
      : fabric_(fabric), tree_(tree), columns_(fabric) {}

  LidTables run() {
    for (const SwitchIndex leaf : tree_.leaves) route_adapters(leaf);
    for (SwitchIndex s = 0; s < fabric_.switches(); ++s) {
      if (tree_.switches[s].ranked()) route_switch(s);
    }
    return columns_.tables();
  }

 private:
  /// A destination on its way through the tree.
  struct Target {
    Lid lid;  ///< 0: an adapter that a leaf lacks; it takes ways, but no entries
    std::uint32_t hops;
    bool counts;  ///< whether its main way is taken note of
    Target further(bool main) const { return {lid, hops + 1, main}; }
  };

  TreeSwitch& at(SwitchIndex s) { return tree_.switches[s]; }

  void start(Lid lid) {
    hops_.assign(fabric_.switches(), kFar);
    lid_ = lid;
  }

  void route_adapters(SwitchIndex leaf) {
    std::size_t routed = 0;
    for (const TreeBundle& bundle : at(leaf).down) {
      if (bundle.far != kNoSwitch) continue;
      const Lid lid = fabric_.subnet().vertices[bundle.end_port].lid;
      start(lid);
      enter(leaf, bundle.cables[0].port, 1);
      climb(leaf, kNoSwitch, {lid, 1, true});
      ++routed;
    }
    // So that the next leaf begins as if this one were full.
    for (; routed < tree_.most_end_ports; ++routed) {
      start(0);
      enter(leaf, 0, 1);
      climb(leaf, kNoSwitch, {0, 1, true});
    }
  }

  void route_switch(SwitchIndex s) {
    start(fabric_.lid(s));
    enter(s, 0, 0);
    climb(s, kNoSwitch, {fabric_.lid(s), 0, false});
  }

  void enter(SwitchIndex s, std::uint8_t port, std::uint32_t hops) {
    if (lid_ != 0) columns_.at(lid_, s) = port;
    hops_[s] = hops;
  }

  [[nodiscard]] TreeIndex index_of(const TreeBundle& bundle) {
    return bundle.far == kNoSwitch ? TreeSwitch{}.index : at(bundle.far).index;
  }

  /// Fewest routes first; of equals the lower index. Nearly sorted already.
  void sort(std::vector<TreeBundle>& bundles, std::uint32_t TreeBundle::* routes) {
    const auto less = [&](const TreeBundle& a, const TreeBundle& b) {
      if (a.*routes != b.*routes) return a.*routes < b.*routes;
      return index_of(a) < index_of(b);
    };
    for (std::size_t i = 1; i < bundles.size(); ++i) {
      for (std::size_t j = i; j > 0 && less(bundles[j], bundles[j - 1]); --j) {
        std::swap(bundles[j], bundles[j - 1]);
      }
    }
  }

  static TreeBundle::Cable& least(TreeBundle& bundle, std::uint32_t TreeBundle::Cable::* routes) {
    return *std::ranges::min_element(bundle.cables, {}, routes);
  }

  /// Routes what is below `s`, or beside it, up to it; true: there was an adapter. `from` is where
  /// the climb came from; what is below that is routed already.
  bool descend(SwitchIndex s, SwitchIndex from, const Target& target) {
    TreeSwitch& here = at(s);
    if (here.down.empty()) return false;
    if (!here.down_is_sorted) sort(here.down, &TreeBundle::routes_up);
    here.down_is_sorted = true;
    sort(here.sideways, &TreeBundle::routes_up);
    bool found = false;
    for (std::size_t i = 0; i < here.down.size(); ++i) {
      if (here.down[i].far == kNoSwitch) {
        found = true;
      } else {
        found |= descend_by(here, here.down[i], from, target);
      }
    }
    for (std::size_t i = 0; target.lid != 0 && i < here.sideways.size(); ++i) {
      found |= descend_by(here, here.sideways[i], from, target);
    }
    return found;
  }

  bool descend_by(TreeSwitch& here, TreeBundle& bundle, SwitchIndex from, const Target& target) {
    if (bundle.far == from || target.hops + 1 >= hops_[bundle.far]) return false;
    TreeBundle::Cable& cable = least(bundle, &TreeBundle::Cable::routes_up);
    enter(bundle.far, cable.far_port, target.hops + 1);
    if (!descend(bundle.far, kNoSwitch, target.further(target.counts))) return false;
    ++cable.routes_up;
    ++bundle.routes_up;
    here.down_is_sorted = false;
    return true;
  }

  /// Routes what is below `s` up to it, then what is above `s` down to it.
  bool climb(SwitchIndex s, SwitchIndex from, const Target& target) {
    bool found = descend(s, from, target);
    TreeSwitch& here = at(s);
    if (here.rank == 0) return found;
    sort(here.up, &TreeBundle::routes_down);
    if (target.counts) found |= climb_main(here, s, target);
    for (std::size_t i = target.counts ? 1 : 0; i < here.up.size(); ++i) {
      found |= climb_by(here.up[i], s, target);
    }
    sort(here.sideways, &TreeBundle::routes_down);
    for (std::size_t i = 0; i < here.sideways.size(); ++i) {
      if (!climb_by(here.sideways[i], s, target)) continue;
      found = true;
      ++here.up[0].routes_down;  // opensm counts it there
      ++least(here.sideways[i], &TreeBundle::Cable::routes_down).routes_down;
    }
    return found;
  }

  bool climb_main(TreeSwitch& here, SwitchIndex s, const Target& target) {
    TreeBundle& bundle = here.up[0];
    TreeBundle::Cable& cable = least(bundle, &TreeBundle::Cable::routes_down);
    ++bundle.routes_down;
    ++cable.routes_down;
    if (target.hops + 1 < hops_[bundle.far]) enter(bundle.far, cable.far_port, target.hops + 1);
    return climb(bundle.far, s, target.further(true));
  }

  bool climb_by(TreeBundle& bundle, SwitchIndex s, const Target& target) {
    if (target.hops + 1 >= hops_[bundle.far]) return false;
    enter(bundle.far, least(bundle, &TreeBundle::Cable::routes_down).far_port, target.hops + 1);
    return climb(bundle.far, s, target.further(false));
  }

  static constexpr std::uint32_t kFar = SwitchFabric::kFar;
  const SwitchFabric& fabric_;
  FatTree& tree_;
  LidColumns columns_;
  Lid lid_ = 0;
  std::vector<std::uint32_t> hops_;  ///< to the destination, by switch
};

}  // namespace

InfinibandRouting ftree(const InfinibandSubnet& subnet, std::span<const Vertex> roots) {
  const SwitchFabric fabric(subnet);
  FatTree tree = find_fat_tree(fabric, roots);
  if (!tree.refusal.empty()) {
    InfinibandRouting out = minhop(subnet);
    out.refusal = tree.refusal;
    return out;
  }
  return {.tables = TreeRouter(fabric, tree).run(), .engine = "ftree", .refusal = ""};
}

}  // namespace lockstep
