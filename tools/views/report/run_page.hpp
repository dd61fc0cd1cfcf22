/// The report of a run of days to months: goodput, what it loses to what, power and cost.
#pragma once

#include <string>

#include "tools/views/run/campaign_result.hpp"

namespace lockstep {

class Behind;
class ClaimCheck;
class Page;
class PresetStore;

/// The self-contained page; sections for what the result has, and what stands `behind` its figures
/// and what the scenario claims, where they are given. Same result, same bytes. Throws UsageError
/// where the program was built without the chart library.
std::string run_page(const CampaignResult& result, const Behind* behind = nullptr,
                     const ClaimCheck* claim = nullptr);

/// Its parts, for a page of several subjects.
void add_run_headline(Page& page, const CampaignResult& result);
/// The last of them are inputs, assumptions and, of `presets` where they are given, sources.
void add_run_sections(Page& page, const CampaignResult& result,
                      const PresetStore* presets = nullptr);

}  // namespace lockstep
