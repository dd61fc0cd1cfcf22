/// What `lockstep run` prints of a run of days to months: CSV and a table.
#pragma once

#include <string>

#include "sim/answer/campaign_answer.hpp"
#include "tools/console/table.hpp"

namespace lockstep {

/// Which draw of the hashes a run is of, or what it is over several.
std::string run_hash_text(const HashAnswer& hash);

/// ", of which 2.31 days before the first step"; empty where it begins at once.
std::string before_text(const CampaignResult& result);
/// "staging of its dataset": what comes before the first step. Requires CampaignResult::before().
std::string waits_for_text(const CampaignResult& result);

/// How many of the runs are given up before their work is done, and what that makes of the figures;
/// empty: none.
std::string unfinished_text(const CampaignResult& result);

/// That failures start the run again, where there are some and no checkpoints; else empty.
std::string unsaved_text(const CampaignResult& result);
/// Why there are more failures than interruptions; empty where there aren't.
std::string more_failures_text(const RunSummary& summary);

/// A header line and one of values: campaign_numbers().
CsvText campaign_csv(const CampaignResult& result);
/// For people, at most 100 columns wide.
std::string campaign_table(const CampaignResult& result, const TextStyle& style);

}  // namespace lockstep
