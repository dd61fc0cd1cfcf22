#include "sim/fabric/faulty_fabric.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <memory>
#include <utility>

#include "models/base/number_text.hpp"
#include "topologies/fabrics/drawn_fabric.hpp"
#include "topologies/graph/cluster_graph.hpp"

namespace lockstep {
namespace {

/// Capacity from vertex to vertex, all parallel cables together.
std::map<std::pair<Vertex, Vertex>, double> capacities(const ClusterGraph& graph) {
  std::map<std::pair<Vertex, Vertex>, double> sum;
  for (GraphLink i = 0; i < graph.link_count(); ++i) {
    sum[{graph.source()[i], graph.target()[i]}] += graph.capacity()[i].base_units();
  }
  return sum;
}

}  // namespace

FabricFault no_fault() {
  FabricFault none;
  none.part = FabricFault::Part::some_cables;
  return none;
}

std::string words_of_fault(const FabricFault& fault) {
  const auto part = [&]() -> std::string {
    switch (fault.part) {
      case FabricFault::Part::cable: {
        const std::string which = fault.index >= 0 ? fmt::format(" {}", fault.index) : "";
        return fmt::format("cable{} {} to {}", which, fault.from, fault.to);
      }
      case FabricFault::Part::box:
        return "switch " + fault.from;
      case FabricFault::Part::nic:
        return "NIC " + fault.from;
      case FabricFault::Part::some_cables:
        return fmt::format("{} cables between switches", fault.count);
    }
    return {};
  };
  const bool one = fault.part != FabricFault::Part::some_cables || fault.count == 1;
  if (fault.bandwidth > BytesPerSecond{}) {
    return fmt::format("{} {} {} GB/s", part(), one ? "keeps" : "keep",
                       plain_number(fault.bandwidth.base_units() / 1e9, 4));
  }
  if (fault.rate > 0) {
    return fmt::format("{} {} {:.4g} % of its rate", part(), one ? "keeps" : "keep",
                       100 * fault.rate);
  }
  return fmt::format("{} {} down", part(), one ? "goes" : "go");
}

Fabric without_faults(const Fabric& fabric) {
  FabricSpec spec = fabric.spec();
  if (spec.faults.empty()) return fabric;
  spec.faults = {no_fault()};
  return {spec, fabric.nodes(), fabric.nics_per_node(), fabric.nic_bandwidth()};
}

std::vector<double> capacity_left(const Fabric& before, std::span<const FabricFault> faults) {
  FabricSpec spec = before.spec();
  spec.faults.insert(spec.faults.end(), faults.begin(), faults.end());
  const auto faulty =
      draw_fabric(spec, before.nodes(), before.nics_per_node(), before.nic_bandwidth());
  const auto old_sums = capacities(*before.graph());
  const auto new_sums = capacities(*faulty);
  std::vector<double> left(before.link_count());
  for (GraphLink i = 0; i < left.size(); ++i) {
    const std::pair ends{before.graph()->source()[i], before.graph()->target()[i]};
    const auto at = new_sums.find(ends);
    left[i] = at == new_sums.end() ? 0 : at->second / old_sums.at(ends);
  }
  return left;
}

}  // namespace lockstep
