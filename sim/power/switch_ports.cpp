#include "sim/power/switch_ports.hpp"

#include <algorithm>

#include "topologies/fabrics/switch_cables.hpp"

namespace lockstep {

BytesPerSecond switch_ports(const Fabric& fabric) {
  BytesPerSecond all;
  for (FabricLink link = 0; link < fabric.link_count(); ++link) all += fabric.capacity(link);
  const NicPorts nics{.count = fabric.nics_per_node(), .bandwidth = fabric.nic_bandwidth()};
  const BytesPerSecond nodes = static_cast<double>(fabric.nodes()) * nics.count * nics.bandwidth;
  const BytesPerSecond idle = 2 * idle_cables(fabric.spec(), fabric.nodes(), nics).capacity;
  if (idle <= BytesPerSecond{}) return all - nodes;
  // Broken cables may be among those that nobody needs.
  return std::max(nodes, all - nodes - idle);
}

BytesPerSecond switch_ports(const Cluster& cluster) {
  if (cluster.nodes < 2) return {};
  const NicPorts ports = fabric_ports(cluster.node, cluster.pools);
  return switch_ports(Fabric(cluster.fabric, cluster.nodes, ports.count, ports.bandwidth));
}

}  // namespace lockstep
