/// A step of reinforcement learning as a page.
#pragma once

#include <string>
#include <vector>

#include "sim/answer/rl_answer.hpp"
#include "sim/answer/step_answer.hpp"
#include "sim/rl/rl_step.hpp"
#include "tools/views/report/input_tables.hpp"

namespace lockstep {

class Behind;
class ClaimCheck;
class Page;

/// What is simulated: the algorithm, samples, the engine and the update.
std::vector<NamedWords> rl_words(const RlScenario& scenario, const RlReport& report);
/// Sections: how long each phase of an iteration takes, and where its GPU time goes.
void add_iteration(Page& page, const RlReport& report);

/// The page of `lockstep run --report` for a scenario with "rl": phases, where the GPU time goes,
/// the engine, the update. Throws UsageError without a chart library (assets.hpp).
std::string rl_page(const RlScenario& scenario, const RlResult& result,
                    const WrittenScenario& written, const Behind* behind = nullptr,
                    const ClaimCheck* claim = nullptr);

}  // namespace lockstep
