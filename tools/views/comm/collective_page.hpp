/// The page of collectives: bandwidth and time over the size, and NCCL's choice at each.
#pragma once

#include <string>

#include "sim/answer/comm_collective.hpp"
#include "sim/answer/step_answer.hpp"

namespace lockstep {

class Behind;

/// `written`: the scenario, for its inputs; null leaves them out. What stands `behind` its figures
/// is there where that is given, and sources are of its presets.
std::string collective_page(const CollectiveStudy& study, const WrittenScenario& written = {},
                            const Behind* behind = nullptr);

}  // namespace lockstep
