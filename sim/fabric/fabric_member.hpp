/// Members of a group as the fabric sees them.
#pragma once

#include <span>
#include <vector>

#include "models/collectives/channels.hpp"
#include "topologies/fabrics/placement.hpp"

namespace lockstep {

/// A member of a group, and the port through which it reaches the fabric.
struct FabricMember {
  GroupMember place;  ///< its NVLink domain, and its GPU in it
  int node = 0;       ///< of the fabric
  int nic = 0;        ///< of the node: a port, as nic_ports() counts them
  int turn = 0;       ///< among the GPUs of the node that share the port
};

/// Where a GPU of a cluster of such nodes is; GPUs are numbered through its nodes.
FabricMember fabric_member(const NodeSpec& node, int gpu);
/// Where a rank of a job is. `nodes`: of the fabric, by node of the job; empty: the same.
FabricMember fabric_member(const Placement& placement, std::span<const int> nodes, int rank);

/// Where the members are, for collective_shape().
std::vector<GroupMember> places_of(std::span<const FabricMember> members);

}  // namespace lockstep
