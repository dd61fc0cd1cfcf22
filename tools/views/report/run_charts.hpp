/// Goodput over what can be chosen: the checkpoint interval.
#pragma once

#include "tools/views/run/campaign_result.hpp"

namespace lockstep {

class Page;

/// Adds one section. Requires result.optimum.
void add_interval_curve(Page& page, const CampaignResult& result);

}  // namespace lockstep
