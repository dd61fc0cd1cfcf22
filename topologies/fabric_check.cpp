#include <cmath>
#include <cstdint>
#include <fmt/format.h>
#include <optional>

#include "topologies/fabric.hpp"
#include "topologies/fabric_counts.hpp"

namespace lockstep {
namespace {

// Bounds that keep every count below in 31 bits, far beyond any real fabric.
constexpr int kPortsMax = 1 << 16;           // of a switch
constexpr std::int64_t kLinksMax = 1 << 28;  // of a fabric, one way
constexpr double kOversubscriptionMax = 1e3;
constexpr double kRelativeBandwidthMax = 1e3;  // of a link over a NIC's, either way

/// False for a value that is no number, too.
bool within(double value, double min, double max) { return value >= min && value <= max; }

using Problem = std::optional<FabricProblem>;

Problem check_number(const char* field, int value, int min) {
  if (value >= min && value <= kPortsMax) return {};
  return FabricProblem{field, fmt::format("{}", value), fmt::format("{} to {}", min, kPortsMax)};
}

Problem check_oversubscription(const char* field, double value) {
  if (within(value, 1 / kOversubscriptionMax, kOversubscriptionMax)) return {};
  return FabricProblem{field, fmt::format("{}", value),
                       fmt::format("{} to {}: capacity of the ports down over that of the ports up",
                                   1 / kOversubscriptionMax, kOversubscriptionMax)};
}

Problem check_links(const FabricSpec& spec, BytesPerSecond nic_bandwidth) {
  const double link = spec.link_bandwidth.base_units();
  const double nic = nic_bandwidth.base_units();
  if (link != 0 && !within(link, nic / kRelativeBandwidthMax, nic * kRelativeBandwidthMax)) {
    return FabricProblem{"link_bandwidth", fmt::format("{} B/s", link),
                         fmt::format("0 (as the NIC's {} B/s), or within a factor {} of it", nic,
                                     kRelativeBandwidthMax)};
  }
  const double latency = spec.switch_latency.base_units();
  if (!within(latency, 0, 1)) {
    return FabricProblem{"switch_latency", fmt::format("{} s", latency), "0 s to 1 s"};
  }
  return {};
}

/// The numbers one by one, before any count is derived from them.
Problem check_members(const FabricSpec& spec, BytesPerSecond nic_bandwidth) {
  if (spec.levels != 2 && spec.levels != 3) {
    return FabricProblem{"levels", fmt::format("{}", spec.levels),
                         "2 (leaf and spine) or 3 (leaf, spine and core)"};
  }
  if (Problem p = check_number("leaf_ports_down", spec.leaf_ports_down, 1)) return p;
  if (Problem p = check_number("pod_leaves", spec.pod_leaves, 0)) return p;
  if (Problem p = check_number("switch_ports", spec.switch_ports, 0)) return p;
  if (Problem p = check_oversubscription("leaf_oversubscription", spec.leaf_oversubscription)) {
    return p;
  }
  if (Problem p = check_oversubscription("spine_oversubscription", spec.spine_oversubscription)) {
    return p;
  }
  return check_links(spec, nic_bandwidth);
}

/// Whether nodes fit leaves, and units fit pods.
Problem check_fit(const FabricSpec& spec, int nics) {
  if (spec.kind == FabricKind::fat_tree && spec.leaf_ports_down < nics) {
    return FabricProblem{
        "leaf_ports_down", fmt::format("{}", spec.leaf_ports_down),
        fmt::format("at least {}: a fat tree has all NICs of a node on one leaf", nics)};
  }
  if (spec.kind == FabricKind::rail_optimised && spec.pod_leaves % nics != 0) {
    return FabricProblem{
        "pod_leaves", fmt::format("{}", spec.pod_leaves),
        fmt::format("a multiple of {}: a rail-optimised unit has a leaf for every NIC of a node",
                    nics)};
  }
  return {};
}

/// Whether the switches have ports enough to join all leaves.
Problem check_reach(const FabricSpec& spec, int nodes, const FabricCounts& counts) {
  if (counts.leaf_uplinks > 0 && counts.spines == 0) {
    if (spec.levels == 2) {
      return FabricProblem{
          "levels", "2",
          fmt::format("3, or switch_ports of at least {}: {} nodes have {} leaf switches, and a "
                      "spine of {} ports cannot reach them all",
                      counts.leaves, nodes, counts.leaves, spec.switch_ports)};
    }
    return FabricProblem{
        "pod_leaves", fmt::format("{}", counts.pod_leaves),
        fmt::format("fewer, since a spine of {} ports must reach every leaf of the pod and the "
                    "cores at {}:1",
                    spec.switch_ports, spec.spine_oversubscription)};
  }
  if (counts.spine_uplinks > 0 && counts.cores == 0) {
    return FabricProblem{"switch_ports", fmt::format("{}", spec.switch_ports),
                         fmt::format("at least {}, one for each pod, since {} nodes have that many",
                                     counts.pods, nodes)};
  }
  return {};
}

/// Links one way, in wide integers: what 32-bit link numbers have to hold.
std::int64_t links_one_way(std::int64_t nic_ports, const FabricCounts& c) {
  const std::int64_t leaf_links = std::int64_t{c.leaves} * c.leaf_uplinks;
  const std::int64_t spines = std::int64_t{c.pods} * c.spines;
  return spines > kLinksMax ? kLinksMax + 1 : nic_ports + leaf_links + spines * c.spine_uplinks;
}

/// Whether counts stay within what switches have, and what link numbers hold.
Problem check_size(const FabricSpec& spec, std::int64_t nic_ports, const FabricCounts& c) {
  if (c.leaf_uplinks > kPortsMax) {
    return FabricProblem{"leaf_oversubscription", fmt::format("{}", spec.leaf_oversubscription),
                         fmt::format("a leaf of at most {} uplinks", kPortsMax)};
  }
  if (c.spine_uplinks > kPortsMax) {
    return FabricProblem{"spine_oversubscription", fmt::format("{}", spec.spine_oversubscription),
                         fmt::format("a spine of at most {} uplinks", kPortsMax)};
  }
  if (links_one_way(nic_ports, c) > kLinksMax) {
    return FabricProblem{"leaf_ports_down", fmt::format("{}", spec.leaf_ports_down),
                         fmt::format("a fabric of at most {} links one way", kLinksMax)};
  }
  return {};
}

}  // namespace

std::optional<FabricProblem> check(const FabricSpec& spec, int nodes, int nics_per_node,
                                   BytesPerSecond nic_bandwidth) {
  const std::int64_t nic_ports = std::int64_t{nodes} * nics_per_node;
  if (nodes < 1 || nics_per_node < 1 || nics_per_node > kPortsMax || nic_ports > kLinksMax) {
    return FabricProblem{
        "nodes", fmt::format("{} nodes of {} NICs", nodes, nics_per_node),
        fmt::format("1 to {} NICs in all, at most {} on a node", kLinksMax, kPortsMax)};
  }
  if (!(nic_bandwidth > BytesPerSecond{}) || !std::isfinite(nic_bandwidth.base_units())) {
    return FabricProblem{"nic_bandwidth", fmt::format("{} B/s", nic_bandwidth.base_units()),
                         "more than 0"};
  }
  if (Problem p = check_members(spec, nic_bandwidth)) return p;
  if (spec.kind == FabricKind::ideal) return {};
  if (Problem p = check_fit(spec, nics_per_node)) return p;

  const FabricCounts counts = fabric_counts(spec, nodes, nics_per_node, nic_bandwidth);
  if (Problem p = check_reach(spec, nodes, counts)) return p;
  return check_size(spec, nic_ports, counts);
}

}  // namespace lockstep
