/// The page of collectives: bandwidth and time over the size, and NCCL's choice at each.
#pragma once

#include <string>

#include "sim/answer/step_answer.hpp"
#include "tools/lockstep/comm/comm_collective.hpp"

namespace lockstep {

/// `written`: the scenario, for its inputs; null leaves them out.
std::string collective_page(const CollectiveStudy& study, const WrittenScenario& written = {},
                            const PresetStore* presets = nullptr);

}  // namespace lockstep
