/// The GPUs or NICs that take part in an entry's traffic, group by group.
#pragma once

#include <vector>

#include "sim/scenario/traffic.hpp"

namespace lockstep {

/// One end of a message: a GPU with its NIC port, or a NIC port alone.
struct TrafficEnd {
  int node = 0;
  int nic = 0;
  int gpu = -1;  ///< in its node; -1: a NIC port
  friend bool operator==(const TrafficEnd&, const TrafficEnd&) = default;
};
/// "node 3 gpu 1", "node 3 nic 0".
std::string name_of(const TrafficEnd& end);

/// In the order of the spec. Requires a spec that read_traffic() let through.
std::vector<TrafficEnd> members_of(const MemberSpec& spec, const NodeSpec& node);

/// The members of group `group`.
std::vector<TrafficEnd> group_of(const std::vector<TrafficEnd>& members, const GroupSpec& groups,
                                 int group);

}  // namespace lockstep
