/// Derives a fabric's switches and links from its ports and oversubscription.
#pragma once

#include "topologies/fabrics/fabric.hpp"

namespace lockstep {

/// Uplinks: the capacity that the oversubscription leaves of the NIC ports which a full leaf uses,
/// over the capacity of a link, rounded up; each carries its part of it, so that the
/// oversubscription is exact. Spines: as few as have the ports for all leaves of a pod, the same
/// number of links from each leaf to each (one link each where `switch_ports` sets no bound); cores
/// likewise. So the tables of NVIDIA's DGX SuperPOD reference architectures come out: 64-port
/// switches with 32 ports down join 128 nodes of 8 NICs by 32 leaves and 16 spines. Requires nodes,
/// NICs, ports, oversubscriptions and bandwidth above 0, and at least one node per leaf or unit. A
/// fabric whose switches have too few ports gets 0 spines or 0 cores.
FabricCounts fabric_counts(const FabricSpec& spec, int nodes, int nics_per_node,
                           BytesPerSecond nic_bandwidth);

}  // namespace lockstep
