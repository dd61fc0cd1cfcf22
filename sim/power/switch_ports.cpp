#include "sim/power/switch_ports.hpp"

namespace lockstep {

BytesPerSecond switch_ports(const Fabric& fabric) {
  BytesPerSecond all;
  for (FabricLink link = 0; link < fabric.link_count(); ++link) all += fabric.capacity(link);
  return all -
         static_cast<double>(fabric.nodes()) * fabric.nics_per_node() * fabric.nic_bandwidth();
}

BytesPerSecond switch_ports(const Cluster& cluster) {
  if (cluster.nodes < 2) return {};
  const NicPorts ports = fabric_ports(cluster.node, cluster.pools);
  return switch_ports(Fabric(cluster.fabric, cluster.nodes, ports.count, ports.bandwidth));
}

}  // namespace lockstep
