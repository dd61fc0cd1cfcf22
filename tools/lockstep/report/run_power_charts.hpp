/// What the site draws: over the run, over a step, by part.
#pragma once

#include <cstddef>
#include <vector>

#include "sim/power/power_series.hpp"
#include "tools/lockstep/run/campaign_result.hpp"

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

/// Adds the section. Requires result.power; the run's chart is there with result.typical.
void add_run_power(Page& page, const CampaignResult& result);

}  // namespace lockstep
