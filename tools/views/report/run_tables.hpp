/// The tables of the page of a long run. Each adds one section.
#pragma once

#include "tools/views/run/campaign_result.hpp"

namespace lockstep {

class Page;

/// How often each cause strikes, and what it costs. Requires failure modes.
void add_causes(Page& page, const CampaignResult& result);
/// What the mean run costs, owned and rented. Requires a bill or a price by the GPU-hour.
void add_cost(Page& page, const CampaignResult& result);
/// What is written to each tier, how often, and what it takes of the training. Of a run without
/// any, nothing.
void add_checkpoints(Page& page, const CampaignResult& result);
/// Mean time to failure by size of the job. Requires result.projections.
void add_projections(Page& page, const CampaignResult& result);
/// How the trajectories differ.
void add_distributions(Page& page, const CampaignResult& result);

}  // namespace lockstep
