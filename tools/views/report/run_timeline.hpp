/// One trajectory over time: where its wall time went, bin by bin, what failed when, and how far
/// training had come.
#pragma once

#include <cstddef>

#include "tools/views/run/campaign_result.hpp"

namespace lockstep {

class Page;

inline constexpr std::size_t kTimelineBins = 600;
inline constexpr std::size_t kMarkedFailures = 1'200;  ///< those that cost most

/// Adds the section. Requires result.typical, with phases.
void add_run_timeline(Page& page, const CampaignResult& result);

}  // namespace lockstep
