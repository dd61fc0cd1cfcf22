/// What surrounds the racks: the grid, the weather and the plants of a run, over its time.
#pragma once

#include "tools/views/run/campaign_result.hpp"

namespace lockstep {

class Page;

/// Adds the section. Requires result.site.
void add_site(Page& page, const CampaignResult& result);

}  // namespace lockstep
