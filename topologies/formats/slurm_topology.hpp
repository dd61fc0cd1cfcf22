/// Slurm's topology.conf: switches by name with the hosts or switches below each, a tree. It says
/// nothing of NICs, cables and rates.
#pragma once

#include <string>
#include <string_view>

#include "topologies/formats/drawn_fabric.hpp"

namespace lockstep {

/// Every host gets one NIC on its switch, and every switch as many cables upwards, shared among the
/// switches above it, as it has hosts below: no oversubscription, which the result's assumptions
/// say. All have `rate`, above 0. Throws InputError with the number of the line.
DrawnFabric read_slurm_topology(const std::string& file, std::string_view text,
                                BytesPerSecond rate);

/// Whether the text is a topology of blocks. read_slurm_topology() refuses those; slurm_blocks.hpp
/// makes a tree of them.
bool is_block_topology(std::string_view text);

/// The fabric as Slurm's tree plugin takes it. Slurm wants each host on one switch and each switch
/// below one other; so what is joined up to a layer is one switch of that layer: the eight leaves
/// of a rail-optimised unit, the spines of a pod. A comment says how many. Hosts that no switch
/// joins are left out. Letters that Slurm does not take in names are replaced.
std::string write_slurm_topology(const DrawnFabric& fabric);

}  // namespace lockstep
