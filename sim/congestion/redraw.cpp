#include "sim/congestion/redraw.hpp"

#include "sim/fabric/faulty_fabric.hpp"
#include "topologies/fabrics/placement.hpp"

namespace lockstep {
namespace {

FabricSpec with_faults(const FabricSpec& spec, bool cables, std::span<const FabricFault> faults) {
  FabricSpec out = spec;
  if (cables) out.faults.push_back(no_fault());
  out.faults.insert(out.faults.end(), faults.begin(), faults.end());
  return out;
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

}  // namespace lockstep
