#include <cmath>
#include <cstdint>
#include <fmt/format.h>
#include <optional>
#include <string>
#include <utility>

#include "topologies/fabrics/drawing.hpp"
#include "topologies/fabrics/drawn_fabric.hpp"
#include "topologies/fabrics/fabric.hpp"

namespace lockstep {
namespace {

constexpr double kOversubscriptionMax = 1e3;
constexpr double kBandwidthMax = 1e18;         // bytes per second
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
  const double nic = nic_bandwidth.base_units();
  for (const auto& [field, bandwidth] : {std::pair{"link_bandwidth", spec.link_bandwidth},
                                         std::pair{"upper_bandwidth", spec.upper_bandwidth}}) {
    const double link = bandwidth.base_units();
    if (link == 0 || within(link, nic / kRelativeBandwidthMax, nic * kRelativeBandwidthMax)) {
      continue;
    }
    return FabricProblem{field, fmt::format("{} B/s", link),
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

Problem check_fault_numbers(const FabricSpec& spec) {
  for (std::size_t i = 0; i < spec.faults.size(); ++i) {
    const FabricFault& fault = spec.faults[i];
    const std::string field = fmt::format("faults/{}/", i);
    if (!within(fault.rate, 0, kRelativeBandwidthMax)) {
      return FabricProblem{field + "rate", fmt::format("{}", fault.rate),
                           fmt::format("0 to {}", kRelativeBandwidthMax)};
    }
    if (!within(fault.bandwidth.base_units(), 0, kBandwidthMax)) {
      return FabricProblem{field + "bandwidth", fmt::format("{}", fault.bandwidth.base_units()),
                           fmt::format("0 to {} B/s", kBandwidthMax)};
    }
    if (Problem p = check_count("cables_missing", fault.count, 0, 1 << 24)) {
      p->field = field + p->field;
      return p;
    }
  }
  return {};
}

/// What kinds other than trees add.
Problem check_shape(const FabricSpec& spec) {
  constexpr int kPlanesMax = 16;
  constexpr int kQueuePairsMax = 1024;
  constexpr int kCablesMax = 1 << 12;
  if (Problem p = check_count("planes", spec.planes, 1, kPlanesMax)) return p;
  if (Problem p = check_count("groups", spec.groups, 0, kPortsMax)) return p;
  if (Problem p = check_count("group_switches", spec.group_switches, 0, kPortsMax)) return p;
  if (Problem p = check_count("group_spines", spec.group_spines, 0, kPortsMax)) return p;
  if (Problem p = check_count("local_cables", spec.local_cables, 1, kCablesMax)) return p;
  if (Problem p = check_count("global_cables", spec.global_cables, 1, kCablesMax)) return p;
  if (Problem p = check_count("hash_draw", spec.hash_draw, 1, kMostHashDraw)) return p;
  if (Problem p = check_count("queue_pairs", spec.queue_pairs, 1, kQueuePairsMax)) return p;
  if (spec.nonminimal_share && !within(*spec.nonminimal_share, 0, 1)) {
    return FabricProblem{"nonminimal_share", fmt::format("{}", *spec.nonminimal_share), "0 to 1"};
  }
  const bool flat = spec.kind == FabricKind::dragonfly || spec.kind == FabricKind::dragonfly_plus ||
                    spec.kind == FabricKind::file;
  if (spec.planes > 1 && flat) {
    return FabricProblem{"planes", fmt::format("{}", spec.planes),
                         "1; trees, rails and tori have planes"};
  }
  return check_fault_numbers(spec);
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
  if (Problem p = check_shape(spec)) return p;
  const FabricPlan plan{spec, nodes, nics_per_node, nic_bandwidth / spec.planes};
  if (Problem p = fabric_kinds()[static_cast<std::size_t>(spec.kind)].check(plan)) return p;
  if (!is_drawn(spec)) return {};
  return check_drawn(spec, nodes, nics_per_node, nic_bandwidth);
}

}  // namespace lockstep
