/// The sentences and headline figures of the page of a long run.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/views/report/html.hpp"
#include "tools/views/report/page.hpp"
#include "tools/views/run/campaign_result.hpp"

namespace lockstep {

/// A checkpoint interval that brings less goodput than this more is not called better.
inline constexpr double kNoticeableGain = 0.0005;

/// "llama3_405b on 16,384 GPUs for 54.0 days"
std::string run_title(const CampaignResult& result);
/// Share of wall time that advances training, what costs most, which interval would be better, and
/// what the lost time is worth.
Html run_headline(const CampaignResult& result);
std::vector<PageFigure> run_figures(const CampaignResult& result);

/// With one decimal, or with as many more as tell it from nothing and from all: "99.95 %".
std::string telling_percent(double share);
/// A title as it stands within a sentence: "work done again"; abbreviations stay.
std::string in_sentence(std::string_view title);

/// "90.27 % ± 0.05 %"; without the interval where it is not known.
std::string percent_with_interval(const SampleMean& of);

}  // namespace lockstep
