/// `lockstep replay --loggops`: a GOAL schedule by the parameters of LogGOPS, without a cluster.
#pragma once

#include <string>

#include "sim/trace/loggops/loggops.hpp"
#include "tools/console/console.hpp"
#include "tools/console/options.hpp"

namespace lockstep {

/// "L=2500,o=1500,g=1000,G=0.02,O=0,S=65535": nanoseconds, S in bytes, in any order; those left
/// out keep their defaults. Throws UsageError.
LogGopsParameters parse_loggops(const std::string& text);

/// Reads the schedule, runs it, and prints when each rank ends. Throws InputError or UsageError.
Exit answer_loggops(const ParsedOptions& options, Console& console);

}  // namespace lockstep
