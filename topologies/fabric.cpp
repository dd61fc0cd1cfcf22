#include "topologies/fabric.hpp"

#include <cassert>
#include <fmt/format.h>

#include "topologies/fabric_counts.hpp"

namespace lockstep {
namespace {

/// The finaliser of SplitMix64 (Steele, Lea and Flood 2014, OOPSLA): every input bit reaches every
/// output bit.
constexpr std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31U);
}

/// What a switch hashes: the flow, and a seed of its own, so that layers choose independently.
enum class Layer : std::uint64_t { leaf = 1, spine_up, core, spine_down };

/// One of `links` parallel links, by the upper half of the hash (no modulo bias worth naming).
int pick(std::uint64_t flow, Layer layer, int switch_number, int links) {
  const auto seed =
      (static_cast<std::uint64_t>(layer) << 32U) | static_cast<std::uint32_t>(switch_number);
  const std::uint64_t upper = mix(flow ^ mix(seed)) >> 32U;
  return static_cast<int>((upper * static_cast<std::uint32_t>(links)) >> 32U);
}

constexpr FabricLink link_number(int n) { return static_cast<FabricLink>(n); }

}  // namespace

Fabric::Fabric(const FabricSpec& spec, int nodes, int nics_per_node, BytesPerSecond nic_bandwidth)
    : spec_(spec),
      nodes_(nodes),
      nics_(nics_per_node),
      nic_bandwidth_(nic_bandwidth),
      counts_(fabric_counts(spec, nodes, nics_per_node, nic_bandwidth)),
      spray_(spec.routing == Routing::spray) {
  assert(!check(spec, nodes, nics_per_node, nic_bandwidth));
  const FabricCounts& c = counts_;
  if (c.leaf_uplinks > 0) leaf_links_ = link_number(c.leaves * (spray_ ? 1 : c.leaf_uplinks));
  if (c.spine_uplinks > 0) {
    spine_links_ = link_number(c.pods * (spray_ ? 1 : c.spines * c.spine_uplinks));
  }
  nic_ports_ = link_number(nodes * nics_per_node);
  link_count_ = 2 * (nic_ports_ + leaf_links_ + spine_links_);
}

// Numbers: all NIC ups, all NIC downs, leaf ups, leaf downs, spine ups, spine downs.
FabricLink Fabric::nic_up(int node, int nic) const {
  assert(node >= 0 && node < nodes_ && nic >= 0 && nic < nics_);
  return link_number(node * nics_ + nic);
}
FabricLink Fabric::nic_down(int node, int nic) const { return nic_ports_ + nic_up(node, nic); }

FabricLink Fabric::leaf_up(int leaf, int uplink) const {
  return 2 * nic_ports_ + link_number(spray_ ? leaf : leaf * counts_.leaf_uplinks + uplink);
}
FabricLink Fabric::leaf_down(int leaf, int uplink) const {
  return leaf_links_ + leaf_up(leaf, uplink);
}
FabricLink Fabric::spine_up(int pod, int spine, int uplink) const {
  const int in_layer =
      spray_ ? pod : (pod * counts_.spines + spine) * counts_.spine_uplinks + uplink;
  return 2 * (nic_ports_ + leaf_links_) + link_number(in_layer);
}
FabricLink Fabric::spine_down(int pod, int spine, int uplink) const {
  return spine_links_ + spine_up(pod, spine, uplink);
}

BytesPerSecond Fabric::capacity(FabricLink link) const {
  assert(link < link_count_);
  const FabricCounts& c = counts_;
  if (link < 2 * nic_ports_) return nic_bandwidth_;
  if (link < 2 * (nic_ports_ + leaf_links_)) {
    return (spray_ ? c.leaf_uplinks : 1) * c.leaf_link_capacity;
  }
  return (spray_ ? c.spines * c.spine_uplinks : 1) * c.spine_link_capacity;
}

std::string Fabric::link_name(FabricLink link) const {
  assert(link < link_count_);
  const FabricCounts& c = counts_;
  const auto per_node = link_number(nics_);
  if (link < 2 * nic_ports_) {
    const FabricLink port = link % nic_ports_;
    return fmt::format("node {} nic {} {}", port / per_node, port % per_node,
                       link < nic_ports_ ? "up" : "down");
  }
  link -= 2 * nic_ports_;
  const bool at_leaf = link < 2 * leaf_links_;
  if (!at_leaf) link -= 2 * leaf_links_;
  const FabricLink layer = at_leaf ? leaf_links_ : spine_links_;
  const bool up = link < layer;
  link %= layer;
  std::string below, above;
  if (spray_) {
    below = fmt::format("{} {}", at_leaf ? "leaf" : "pod", link);
    above = at_leaf ? "spines" : "cores";
  } else {
    const int uplinks = at_leaf ? c.leaf_uplinks : c.spine_uplinks;
    const int switches = at_leaf ? c.spines : c.cores;  // above, per group
    const int lower = static_cast<int>(link) / uplinks;
    const int group = at_leaf ? pod_of(lower) : lower % c.spines;
    const int uplink = static_cast<int>(link) % uplinks;
    const int parallel = uplinks / switches;
    below = fmt::format("{} {}", at_leaf ? "leaf" : "spine", lower);
    above = fmt::format("{} {}", at_leaf ? "spine" : "core", group * switches + uplink / parallel);
    if (parallel > 1) (up ? above : below) += fmt::format(" link {}", uplink % parallel);
  }
  return up ? below + " to " + above : above + " to " + below;
}

int Fabric::leaf_of(int node, int nic) const {
  assert(node >= 0 && node < nodes_ && nic >= 0 && nic < nics_);
  const int unit = node / counts_.unit_nodes;
  return spec_.kind == FabricKind::rail_optimised ? unit * nics_ + nic : unit;
}

int Fabric::switches_crossed(int from_node, int from_nic, int to_node, int to_nic) const {
  if (from_node == to_node && from_nic == to_nic) return 0;
  const int from = leaf_of(from_node, from_nic);
  const int to = leaf_of(to_node, to_nic);
  if (from == to) return 1;
  return pod_of(from) == pod_of(to) ? 3 : 5;
}

void Fabric::route(int from_node, int from_nic, int to_node, int to_nic, std::uint64_t queue_pair,
                   std::vector<RouteHop>& out) const {
  const FabricLink first = nic_up(from_node, from_nic);
  const FabricLink last = nic_down(to_node, to_nic);
  if (first + nic_ports_ == last) return;
  const int from = leaf_of(from_node, from_nic);
  const int to = leaf_of(to_node, to_nic);
  const int from_pod = pod_of(from);
  const int to_pod = pod_of(to);

  out.push_back({first, 1});
  if (from != to && spray_) {
    out.push_back({leaf_up(from, 0), 1});
    if (from_pod != to_pod) {
      out.push_back({spine_up(from_pod, 0, 0), 1});
      out.push_back({spine_down(to_pod, 0, 0), 1});
    }
    out.push_back({leaf_down(to, 0), 1});
  } else if (from != to) {
    const FabricCounts& c = counts_;
    const std::uint64_t flow =
        mix(mix((static_cast<std::uint64_t>(first) << 32U) | last) ^ queue_pair);
    const int uplink = pick(flow, Layer::leaf, from, c.leaf_uplinks);
    const int per_spine = c.leaf_uplinks / c.spines;
    const int spine = uplink / per_spine;
    out.push_back({leaf_up(from, uplink), 1});
    if (from_pod != to_pod) {
      const int from_spine = from_pod * c.spines + spine;
      const int spine_uplink = pick(flow, Layer::spine_up, from_spine, c.spine_uplinks);
      const int per_core = c.spine_uplinks / c.cores;
      const int core = spine_uplink / per_core;
      const int core_link = pick(flow, Layer::core, spine * c.cores + core, per_core);
      out.push_back({spine_up(from_pod, spine, spine_uplink), 1});
      out.push_back({spine_down(to_pod, spine, core * per_core + core_link), 1});
    }
    const int to_spine = to_pod * c.spines + spine;
    const int down = pick(flow, Layer::spine_down, to_spine, per_spine);
    out.push_back({leaf_down(to, spine * per_spine + down), 1});
  }
  out.push_back({last, 1});
}

}  // namespace lockstep
