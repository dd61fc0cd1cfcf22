/// A step of reinforcement learning as a page.
#pragma once

#include <string>

#include "sim/answer/step_answer.hpp"
#include "sim/rl/rl_step.hpp"

namespace lockstep {

class Behind;

/// The page of `lockstep run --report` for a scenario with "rl": phases, where the GPU time goes,
/// the engine, the update. Throws UsageError without a chart library (assets.hpp).
std::string rl_page(const RlScenario& scenario, const RlReport& report,
                    const WrittenScenario& written, const Behind* behind = nullptr);

}  // namespace lockstep
