/// What data-parallel collectives put on the links of the fabric.
#pragma once

#include <cstddef>
#include <vector>

#include "sim/step/lanes.hpp"
#include "sim/step/plan.hpp"

namespace lockstep {

/// Channels of a stage that cross the fabric and load the same links in the same proportions: those
/// of one kind of group and one algorithm.
struct DataWay {
  const DataChannel* first = nullptr;
  std::vector<std::size_t> channels;  ///< of the stage

  [[nodiscard]] bool is_ring() const;
};
/// In the order of the kinds of groups, rings first.
std::vector<DataWay> data_ways(const StagePlan& stage);

/// Adds to `uses` what all groups of the stage put on links together, or that of one (see
/// DataGroup::group_of()), for each byte that a member sends over its NIC on average. Rings go from
/// each member to its like in the next NVLink domain; the edges of any other algorithm are those of
/// collective_shape(), where switches can limit. `lanes` belongs to the plan.
void add_data_uses(const StepPlan& plan, const StagePlan& stage, const DataWay& way, int which,
                   Lanes& lanes, std::vector<RouteHop>& uses);

}  // namespace lockstep
