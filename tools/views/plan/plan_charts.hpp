/// The charts of a plan's page. Each adds charts to the section that is open.
#pragma once

#include "tools/views/plan/plan_output.hpp"

namespace lockstep {

class Page;

/// Time against money of every candidate that is possible, with intervals and limits.
void add_front_chart(Page& page, const PlanAnswer& answer);
/// Side by side: how likely each is done by a day, and for a sum.
void add_chance_charts(Page& page, const PlanAnswer& answer);
/// What time, money or energy of the shown candidate become at both ends of each input.
void add_tornado_chart(Page& page, const PlanAnswer& answer, std::size_t measure);

}  // namespace lockstep
