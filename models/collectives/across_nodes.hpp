/// Collectives over several NVLink domains ("nodes" here, whatever the operating system says).
#pragma once

#include <vector>

#include "models/collectives/candidate.hpp"
#include "models/hardware.hpp"

namespace lockstep {

/// Appends the candidates of a group of n = call.ranks members, g = call.ranks_per_node in each of
/// k = n / g >= 2 nodes, every member with `nic_bandwidth` of its own.
void add_across_nodes_candidates(const CollectiveCall& call, const GpuSpec& gpu,
                                 const TransportSpec& transport, BytesPerSecond nic_bandwidth,
                                 std::vector<CollectiveCandidate>& out);

}  // namespace lockstep
