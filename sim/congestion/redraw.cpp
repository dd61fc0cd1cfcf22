#include "sim/congestion/redraw.hpp"

#include <map>
#include <memory>
#include <utility>

#include "topologies/builders/drawn_fabric.hpp"
#include "topologies/cluster_graph.hpp"
#include "topologies/placement.hpp"

namespace lockstep {
namespace {

FabricSpec with_faults(const FabricSpec& spec, bool cables, std::span<const FabricFault> faults) {
  FabricSpec out = spec;
  // A fabric with faults is drawn cable by cable; this one breaks nothing.
  if (cables) {
    FabricFault none;
    none.part = FabricFault::Part::some_cables;
    out.faults.push_back(none);
  }
  out.faults.insert(out.faults.end(), faults.begin(), faults.end());
  return out;
}

/// Capacity from vertex to vertex, all parallel cables together.
std::map<std::pair<Vertex, Vertex>, double> capacities(const ClusterGraph& graph) {
  std::map<std::pair<Vertex, Vertex>, double> sum;
  for (GraphLink i = 0; i < graph.link_count(); ++i) {
    sum[{graph.source()[i], graph.target()[i]}] += graph.capacity()[i].base_units();
  }
  return sum;
}

}  // namespace

Fabric draw_fabric(const Cluster& cluster, bool cables, std::span<const FabricFault> faults) {
  const NicPorts ports = nic_ports(cluster.node);
  return {with_faults(cluster.fabric, cables, faults), cluster.nodes, ports.count, ports.bandwidth};
}

bool can_redraw(const Cluster& cluster, std::span<const FabricFault> faults) {
  const NicPorts ports = nic_ports(cluster.node);
  return !check(with_faults(cluster.fabric, true, faults), cluster.nodes, ports.count,
                ports.bandwidth);
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
