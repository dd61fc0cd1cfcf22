/// The power of a step over its time, as CSV.
#pragma once

#include <string>

#include "tools/lockstep/run_result.hpp"

namespace lockstep {

/// One line where the power changes: time_s, then watts of the mean GPU, node and rack, and of the
/// facility, each from that time on. The last line repeats the values at the end of the step.
/// Requires result.power. Throws InputError where the file cannot be written.
void write_power_trace(const std::string& path, const RunResult& result);

}  // namespace lockstep
