/// Builds the plan of one stage: what its passes consist of, and what its replicas exchange.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/scenario/scenario.hpp"
#include "sim/step/pieces.hpp"
#include "sim/step/plan.hpp"

namespace lockstep {

/// Fills `out`, of which the stage, its pool, micro batches and groups are there. `layers`: of each
/// virtual stage of the pipeline; `pools`: of the replicas of the stage. `pieces` are those of the
/// pool of `out`; of the plan all is there but its stages and exchanges.
void build_stage(const Scenario& scenario, const StepPlan& plan, const Pieces& pieces,
                 const std::vector<int>& layers, const std::vector<std::uint32_t>& pools,
                 StagePlan& out);

}  // namespace lockstep
