/// What the site draws: over the run, over a step, by part.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "sim/power/power_series.hpp"
#include "sim/power/step_power.hpp"
#include "tools/views/run/campaign_result.hpp"

namespace lockstep {

class Page;

inline constexpr std::size_t kPowerBins = 600;  ///< each with its mean and its extremes

/// A series in equal bins: mean, lowest and highest power of each. The means times their length
/// add up to the energy.
struct PowerBins {
  Seconds width;
  std::vector<Watts> low, mean, high;
};
/// Requires a series of some length, and at least one bin.
PowerBins bin_power(const PowerSeries& series, std::size_t bins);

/// Charts of the site's power and of the mean node's, with what a meter reads, over what `over`
/// calls it: "a step", "an iteration". None where the answer has no series.
void add_step_charts(Page& page, const StepPower& power, Seconds meter, std::string_view over);

/// Adds the section. Requires result.power; the run's chart is there with result.typical.
void add_run_power(Page& page, const CampaignResult& result);

}  // namespace lockstep
