/// What the NIC ports of a cluster can send: where cables come from a file, what those carry.
#pragma once

#include <string>

#include "topologies/fabrics/fabric.hpp"

namespace lockstep {

/// Of one port, all of its cables together.
struct NicRates {
  BytesPerSecond least, most;
};

/// Of the first `nodes` nodes. `nic_bandwidth` is that of the nodes' own NIC ports, which holds
/// unless the fabric is of kind `file`.
NicRates nic_rates(const FabricSpec& spec, int nodes, BytesPerSecond nic_bandwidth);

/// Of the cables of a graph's NIC ports; 0 where there is none.
NicRates nic_rates(const ClusterGraph& graph);

/// "50 GB/s", "25 GB/s to 50 GB/s".
std::string words_of(const NicRates& rates);

}  // namespace lockstep
