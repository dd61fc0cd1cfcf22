/// A collective among GPUs of a traffic scenario as NCCL runs it.
#pragma once

#include <vector>

#include "models/collectives/channels.hpp"
#include "models/collectives/collectives.hpp"
#include "sim/fabric/collective_load.hpp"
#include "sim/scenario/members.hpp"

namespace lockstep {

struct TrafficCollective {
  CollectiveCost cost;  ///< of the algorithm that NCCL takes at this size
  CollectiveShape shape;
  std::vector<FabricMember> members;  ///< the domain of a root first, where there is one
  double sent = 0;        ///< bytes between members: over each edge as nccl-tests counts them
  double pairs = 1;       ///< of sender and receiver among which they are shared out
  int peer_channels = 1;  ///< connections between two that send to each other
};

/// Requires an entry of Grain::nccl and two GPUs at least. GPUs of other groups of the entry that
/// share a NIC with them send at the same time.
TrafficCollective traffic_collective(const TrafficScenario& scenario, const TrafficEntry& entry,
                                     const std::vector<TrafficEnd>& ends);

}  // namespace lockstep
