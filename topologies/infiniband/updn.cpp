#include <algorithm>
#include <map>

#include "topologies/infiniband/switch_fabric.hpp"

namespace lockstep {
namespace {

constexpr std::uint32_t kNoRank = SwitchFabric::kFar;

/// Layer of each switch from the roots.
struct Ranks {
  std::vector<std::uint32_t> of;
  bool any_root = false;
};

/// End ports behind each switch.
std::vector<int> count_end_ports(const SwitchFabric& fabric) {
  std::vector<int> out(fabric.switches(), 0);
  for (SwitchIndex s = 0; s < fabric.switches(); ++s) {
    out[s] = static_cast<int>(std::ranges::count_if(
        fabric.ports(s), [](const SwitchPort& port) { return port.leads_to_end_port(); }));
  }
  return out;
}

/// updn_find_root_nodes_by_min_hop(): over 90 % of all end ports at one distance, over 5 % at no
/// other.
std::vector<SwitchIndex> find_roots(const SwitchFabric& fabric) {
  const std::vector<int> ends = count_end_ports(fabric);
  int all = 0;
  std::vector<std::map<std::uint32_t, int>> at_distance(fabric.switches());
  for (SwitchIndex to = 0; to < fabric.switches(); ++to) {
    if (ends[to] == 0) continue;
    all += ends[to];
    const auto far = fabric.distances(to);
    for (SwitchIndex s = 0; s < fabric.switches(); ++s) at_distance[s][far[s]] += ends[to];
  }
  std::vector<SwitchIndex> roots;
  for (SwitchIndex s = 0; s < fabric.switches(); ++s) {
    int most = 0, some = 0;
    for (const auto& [distance, count] : at_distance[s]) {
      if (distance == SwitchFabric::kFar) continue;
      if (count > all * 0.9) ++most;
      if (count > all * 0.05) ++some;
    }
    if (most == 1 && some == 1) roots.push_back(s);
  }
  return roots;
}

Ranks rank_from(const SwitchFabric& fabric, std::vector<SwitchIndex> queue) {
  Ranks ranks{.of = std::vector<std::uint32_t>(fabric.switches(), kNoRank),
              .any_root = !queue.empty()};
  for (const SwitchIndex root : queue) ranks.of[root] = 0;
  for (std::size_t next = 0; next < queue.size(); ++next) {
    for (const SwitchPort& port : fabric.ports(queue[next])) {
      if (!port.leads_to_switch() || ranks.of[port.far_switch] != kNoRank) continue;
      ranks.of[port.far_switch] = ranks.of[queue[next]] + 1;
      queue.push_back(port.far_switch);
    }
  }
  return ranks;
}

/// Between roots every way is up, so that they find each other; within a layer the larger GUID is
/// the upper one.
bool leads_up(const SwitchFabric& fabric, const Ranks& ranks, SwitchIndex from, SwitchIndex to) {
  const std::uint32_t a = ranks.of[from], b = ranks.of[to];
  if (a == 0 && b == 0) return true;
  return a != b ? a > b : fabric.guid(from) > fabric.guid(to);
}

/// updn_bfs_by_node(): walks away from the destination, against the direction of packets, first up,
/// then down. A switch keeps the direction in which it was first queued, and may be queued again
/// when another of its ports turns out nearer.
void choose_up_down(const SwitchFabric& fabric, const Ranks& ranks, SwitchIndex to,
                    PortChoices& choices) {
  constexpr std::uint32_t kFar = SwitchFabric::kFar;
  std::vector<std::vector<std::uint32_t>> hops(fabric.switches());  // by switch and its port
  std::vector<std::uint32_t> least(fabric.switches(), kFar);
  for (SwitchIndex s = 0; s < fabric.switches(); ++s) hops[s].assign(fabric.ports(s).size(), kFar);
  std::vector<bool> goes_up(fabric.switches(), true), queued(fabric.switches(), false);
  std::vector<SwitchIndex> queue{to};
  least[to] = 0;
  for (std::size_t next = 0; next < queue.size(); ++next) {
    const SwitchIndex here = queue[next];
    queued[here] = false;
    for (const SwitchPort& port : fabric.ports(here)) {
      if (!port.leads_to_switch()) continue;
      const SwitchIndex far = port.far_switch;
      const bool up = leads_up(fabric, ranks, here, far);
      if (!goes_up[here] && up) continue;
      if (least[here] + 1 >= hops[far][port.far_port]) continue;
      hops[far][port.far_port] = least[here] + 1;
      least[far] = std::min(least[far], least[here] + 1);
      if (queued[far]) continue;
      goes_up[far] = up;
      queued[far] = true;
      queue.push_back(far);
    }
  }
  for (SwitchIndex s = 0; s < fabric.switches(); ++s) {
    choices[s].clear();
    for (std::size_t port = 1; port < hops[s].size() && least[s] != kFar; ++port) {
      if (hops[s][port] == least[s]) choices[s].push_back(static_cast<std::uint8_t>(port));
    }
  }
}

}  // namespace

InfinibandRouting updn(const InfinibandSubnet& subnet, std::span<const Vertex> roots) {
  const SwitchFabric fabric(subnet);
  std::vector<SwitchIndex> at;
  for (const Vertex root : roots) {
    if (fabric.switch_at(root) != kNoSwitch) at.push_back(fabric.switch_at(root));
  }
  if (roots.empty()) at = find_roots(fabric);
  std::ranges::sort(at);
  const Ranks ranks = rank_from(fabric, at);
  if (!ranks.any_root) {
    InfinibandRouting out = minhop(subnet);
    out.refusal = "no switch sees over 90 % of adapters at one distance and over 5 % at no other";
    return out;
  }
  const auto choose = [&](SwitchIndex to, PortChoices& choices) {
    choose_up_down(fabric, ranks, to, choices);
  };
  return {.tables = balanced_tables(fabric, choose), .engine = "updn", .refusal = ""};
}

}  // namespace lockstep
