/// The report of a plan: the recommendation, the front, what it depends on, all assumptions.
#pragma once

#include <string>

#include "sim/answer/step_answer.hpp"
#include "tools/views/plan/plan_output.hpp"

namespace lockstep {

class Behind;
class Page;

/// The self-contained page. Same answer, same bytes. Throws UsageError where the program was built
/// without the chart library.
/// `written`: the plan's document. What stands `behind` its figures is there where that is given,
/// and sources are of its presets.
std::string plan_page(const PlanAnswer& answer, const WrittenScenario& written = {},
                      const Behind* behind = nullptr);
/// All of it but the frame and what it rests on, for a page that a test looks into.
void add_plan(Page& page, const PlanAnswer& answer);

}  // namespace lockstep
