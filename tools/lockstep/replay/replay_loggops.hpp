/// `lockstep replay --loggops`: a GOAL schedule by the parameters of LogGOPS, without a cluster.
#pragma once

#include "tools/console/console.hpp"
#include "tools/console/options.hpp"

namespace lockstep {

/// Reads the schedule, runs it, and prints when each rank ends. Throws InputError or UsageError.
Exit answer_loggops(const ParsedOptions& options, Console& console);

}  // namespace lockstep
