/// The section of a run's page about its dataset: its way from tier to tier, and what storage
/// costs.
#pragma once

#include "tools/views/run/campaign_result.hpp"

namespace lockstep {

class Page;

/// What holds the passes back, the hops of the staging, and money by month of each tier. Requires
/// result.plan.data.
void add_data(Page& page, const CampaignResult& result);

}  // namespace lockstep
