/// A part of a cluster whose nodes are all of one kind.
#pragma once

#include <algorithm>
#include <vector>

#include "models/spec/hardware.hpp"
#include "topologies/fabrics/placement.hpp"

namespace lockstep {

struct NodePool {
  NodeSpec node;
  int nodes = 1;
};

/// NIC ports as the fabric of a cluster has them: of the fastest pool, or of `node` where there are
/// none.
inline NicPorts fabric_ports(const NodeSpec& node, const std::vector<NodePool>& pools) {
  NicPorts ports = nic_ports(node);
  for (const NodePool& pool : pools) {
    ports.bandwidth = std::max(ports.bandwidth, nic_ports(pool.node).bandwidth);
  }
  return ports;
}

}  // namespace lockstep
