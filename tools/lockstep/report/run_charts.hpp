/// Goodput over what can be chosen: the checkpoint interval, and one or two values of the scenario.
#pragma once

#include "tools/lockstep/run/campaign_result.hpp"

namespace lockstep {

class Page;

/// Cells of the grid from here on are marked: what Llama Team 2024, arXiv:2407.21783,
/// section 3.3.4, report to have reached ("higher than 90 %"), and a common target.
inline constexpr double kMarkedGoodput = 0.9;

/// Each adds one section. Requires result.optimum, result.grid.
void add_interval_curve(Page& page, const CampaignResult& result);
void add_goodput_grid(Page& page, const CampaignResult& result);

}  // namespace lockstep
