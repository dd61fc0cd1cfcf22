#include "sim/scenario/fabric_assumptions.hpp"

#include <cmath>
#include <filesystem>
#include <fmt/format.h>
#include <utility>

#include "topologies/fabrics/fabric_counts.hpp"
#include "topologies/fabrics/nic_rates.hpp"
#include "topologies/fabrics/placement.hpp"
#include "topologies/graph/cluster_graph.hpp"

namespace lockstep {

namespace {

/// What links slower than NICs mean in a tree: more of them, as what was asked for is the share of
/// the NICs' bandwidth that leaves a leaf. Empty where there are none.
std::string thin_links(const FabricSpec& fabric, const NodeSpec& node, int nodes) {
  const NicPorts ports = nic_ports(node);
  const bool tree =
      fabric.kind == FabricKind::fat_tree || fabric.kind == FabricKind::rail_optimised;
  if (!tree || ports.count == 0 || fabric.link_bandwidth <= BytesPerSecond{} ||
      fabric.link_bandwidth >= ports.bandwidth) {
    return {};
  }
  if (check(fabric, nodes, ports.count, ports.bandwidth)) return {};  // an error says more
  const FabricCounts counts = fabric_counts(fabric, nodes, ports.count, ports.bandwidth);
  if (counts.leaves == 1) return {};
  return fmt::format(
      "fabric: {} uplinks a leaf, as links of {:.4g} Gb/s are thinner than NICs of {:.4g} Gb/s and "
      "leaf_oversubscription {:.4g} holds",
      counts.leaf_uplinks, fabric.link_bandwidth / gigabits_per_second(1),
      ports.bandwidth / gigabits_per_second(1), fabric.leaf_oversubscription);
}

}  // namespace

std::vector<std::string> fabric_assumptions(const FabricSpec& fabric, const NodeSpec& node,
                                            int nodes) {
  std::vector<std::string> out;
  if (std::string text = thin_links(fabric, node, nodes); !text.empty()) {
    out.push_back(std::move(text));
  }
  if (fabric.kind != FabricKind::file || fabric.graph == nullptr) return out;
  for (const std::string& untold : fabric.graph->untold()) out.push_back("fabric." + untold);
  const NicPorts ports = nic_ports(node);
  const NicRates rates = nic_rates(fabric, nodes, ports.bandwidth);
  const NicRates own{ports.bandwidth, ports.bandwidth};
  constexpr double kSame = 1e-6;  // what a rate loses as text
  if (std::abs(rates.least / own.least - 1) < kSame &&
      std::abs(rates.most / own.most - 1) < kSame) {
    return out;
  }
  out.push_back(
      fmt::format("NICs send at {}, the rate of their cables in {}; those of {} could send "
                  "at {}",
                  words_of(rates), std::filesystem::path(fabric.file).filename().string(),
                  node.name, words_of(own)));
  return out;
}

}  // namespace lockstep
