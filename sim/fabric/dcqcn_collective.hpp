/// What DCQCN's start makes of a collective by itself: the flows of its groups, run to their end.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "models/base/units.hpp"
#include "models/collectives/channels.hpp"
#include "models/spec/hardware.hpp"
#include "sim/fabric/collective_load.hpp"
#include "sim/fabric/group_uses.hpp"

namespace lockstep {

/// A group that runs the same as all others of its call, at the same time.
struct StartedGroup {
  CollectiveShape shape;
  std::vector<FabricMember> members;
};

/// Messages into which a NIC of the group divides each byte of `load`, on average over them: as
/// many as it sends over the bytes that it sends. Requires that `load` is of this group alone.
/// 1 where nothing crosses a NIC.
double messages_per_byte(const GroupCollective& collective, std::span<const FabricMember> members,
                         CollectiveLoad& load, const Fabric& fabric);

struct StartedCollective {
  Seconds moving;  ///< from the first byte to the last, of the group that takes longest
  std::optional<FabricLink> slowest;  ///< that held it longest; none: only its own pace did
};

/// A collective of groups that start together, each one flow over the links of its shape at most at
/// `pace`, as in a step. `efficiency`: the share of a link that payload gets.
/// Requires a payload and a pace above 0.
StartedCollective move_with_dcqcn(const Fabric& fabric, std::span<const StartedGroup> groups,
                                  const GroupCollective& collective, BytesPerSecond pace,
                                  Bytes payload, double efficiency);

}  // namespace lockstep
