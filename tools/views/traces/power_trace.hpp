/// Power over the time of a step or of a whole run, as CSV, or as OpenMetrics text where the name
/// of the file ends in .om (or .om.gz): lockstep_power_watts{of="gpu"} and so on, and
/// lockstep_phase.
#pragma once

#include <string>

#include "tools/views/run/campaign_result.hpp"
#include "tools/views/run/run_result.hpp"

namespace lockstep {

/// One line where the power changes: time_s, then watts of the mean GPU, node, rack and row, and of
/// the facility, each from that time on. The last line repeats the values at the end of the step.
/// Requires result.power. Throws InputError where the file cannot be written.
void write_power_trace(const std::string& path, const RunResult& result);

/// The same of a run, phase by phase, with the phase's name behind time_s. While steps go on the
/// columns are their means; facility_low_w and facility_high_w are what the facility swings between
/// within each step. Of a run with a site: a line for each hour instead, with its weather, its
/// grid, battery and water, energy and money. Requires result.power and result.typical. Throws
/// InputError as above.
void write_power_trace(const std::string& path, const CampaignResult& result);

}  // namespace lockstep
