/// Fabrics as packet networks: the same links, the same routes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/packet/packet_network.hpp"
#include "topologies/fabrics/fabric.hpp"

namespace lockstep {

/// A NIC port of a fabric, counted through: node * nics_per_node + nic.
using PortNumber = int;

/// Every link of the fabric under its own number, no flows. Switches take the fabric's switch
/// latency to forward a packet, hosts none. Requires a fabric whose links are cables: one routed by
/// ECMP, since arithmetic routes of sprayed trees merge parallel cables.
PacketNetwork packet_network(const Fabric& fabric, Seconds cable_latency);

/// The path of one queue pair. A path over one of the `dead` links is hashed again, as switches do
/// that have lost a port, until it avoids them; empty if 1,000 hashes do not.
std::vector<LinkIndex> hashed_path(const Fabric& fabric, PortNumber from, PortNumber to,
                                   std::uint64_t queue_pair, std::span<const LinkIndex> dead);
/// All paths that hashing can choose and that avoid the dead links, each once, in order: what
/// packet spraying spreads over.
std::vector<std::vector<LinkIndex>> all_paths(const Fabric& fabric, PortNumber from, PortNumber to,
                                              std::span<const LinkIndex> dead);

}  // namespace lockstep
