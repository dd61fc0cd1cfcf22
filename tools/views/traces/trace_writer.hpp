/// The timeline of a step as Chrome Trace JSON, which Perfetto, chrome://tracing and speedscope
/// open.
///
/// One process per pipeline stage (folded) or per stage and replica (unfolded), in that order; one
/// thread per stream (compute, sends, data parallel). Every slice is a complete event ("ph": "X")
/// with its times in microseconds, exact to the picosecond.
#pragma once

#include <string>

#include "sim/step/step_report.hpp"

namespace lockstep {

class OutputFile;

/// Writes the report's timeline. Requires a report that recorded its timeline and kept its actors.
/// `title` goes into otherData. Throws InputError where the file cannot be written.
void write_trace(OutputFile& file, const StepReport& report, const std::string& title);

}  // namespace lockstep
