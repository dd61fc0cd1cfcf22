#include "sim/step/site.hpp"

#include <algorithm>

#include "sim/step/plan.hpp"
#include "topologies/fabrics/placement.hpp"

namespace lockstep {

Fabric own_fabric(const Scenario& scenario, const StepPlan& plan) {
  const NicPorts ports = fabric_ports(scenario.node, scenario.pools);
  return {scenario.fabric, std::max(scenario.nodes, Placement{plan.placement}.nodes()), ports.count,
          ports.bandwidth};
}

std::vector<double> nic_shares(std::span<const NodePool> pools, const Fabric& fabric) {
  std::vector<double> left;
  if (fabric.spec().kind == FabricKind::file) return left;
  std::vector<RouteHop> links;
  int node = 0;
  for (const NodePool& pool : pools) {
    const NicPorts ports = nic_ports(pool.node);
    const double share = ports.bandwidth / fabric.nic_bandwidth();
    const int end = node + pool.nodes;
    for (; node < end && share < 1; ++node) {
      for (int nic = 0; nic < ports.count; ++nic) {
        fabric.nic_ups(node, nic, links);
        fabric.nic_downs(node, nic, links);
      }
    }
    node = end;
    if (!links.empty()) left.resize(fabric.link_count(), 1.0);
    for (const RouteHop& hop : links) left[hop.link] = share;
    links.clear();
  }
  return left;
}

}  // namespace lockstep
