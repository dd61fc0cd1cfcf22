/// A collective of ranks that sit on GPUs in their order, as its cost has to know them.
#pragma once

#include <span>
#include <vector>

#include "models/base/units.hpp"
#include "models/collectives/collectives.hpp"
#include "topologies/fabrics/placement.hpp"

namespace lockstep {

/// Rank after rank on GPU after GPU, domain after domain.
PlacementSpec placement_in_order(int ranks, const NodeSpec& node);

/// Ranks of a group, which ascend, by the NVLink domain that they are in.
std::vector<std::vector<int>> by_domain(const Placement& placement, std::span<const int> group);

/// Of the members of these domains. Requires at least one, none of them empty.
CollectiveCall group_call(CollectiveOp op, Bytes payload,
                          const std::vector<std::vector<int>>& domains);

}  // namespace lockstep
