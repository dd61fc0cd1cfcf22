/// How the groups that exchange inside layers lie over NVLink domains.
#pragma once

#include <vector>

#include "models/collectives/group_spread.hpp"
#include "models/spec/transformer.hpp"
#include "topologies/fabrics/placement.hpp"

namespace lockstep {

struct LayerGroups {
  DomainSpreads tensor;
  DomainSpreads context;
  DomainSpreads expert;
  DomainSpreads expert_shard;  ///< ranks that split an expert between them
};

/// Of all stages. Ranks of a stage are numbered tensor, context, data; groups of experts fill them
/// in that order, the ranks that split an expert side by side.
LayerGroups layer_groups(const Parallelism& parallelism, const Placement& placement);

/// What collectives need to know of these ways.
DomainSpreads domain_spreads(const std::vector<GroupSpread>& ways);

}  // namespace lockstep
