/// The report of a plan: the recommendation, the front, what it depends on, all assumptions.
#pragma once

#include <string>

#include "sim/answer/step_answer.hpp"
#include "tools/lockstep/plan/plan_output.hpp"

namespace lockstep {

class Page;

/// The self-contained page. Same answer, same bytes. Throws UsageError where the program was built
/// without the chart library.
/// `written`: the plan's document; sources are of these presets, null: none are listed.
std::string plan_page(const PlanAnswer& answer, const WrittenScenario& written = {},
                      const PresetStore* presets = nullptr);
/// All of it but the frame and what it rests on, for a page that a test looks into.
void add_plan(Page& page, const PlanAnswer& answer);

}  // namespace lockstep
