#include "sim/fabric/faulty_fabric.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "topologies/builders/drawn_fabric.hpp"
#include "topologies/cluster_graph.hpp"

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
