#include "sim/scenario/fabric_assumptions.hpp"

#include <cmath>
#include <filesystem>
#include <fmt/format.h>

#include "topologies/fabrics/nic_rates.hpp"
#include "topologies/fabrics/placement.hpp"
#include "topologies/graph/cluster_graph.hpp"

namespace lockstep {

std::vector<std::string> fabric_assumptions(const FabricSpec& fabric, const NodeSpec& node,
                                            int nodes) {
  std::vector<std::string> out;
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
