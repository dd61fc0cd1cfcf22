/// What `lockstep sweep --estimate` prints.
#pragma once

#include <string>

#include "tools/sweep/local_sweep.hpp"

namespace lockstep {

/// Times a few points and prints what all of them take, as a table or JSON.
void print_estimate(const SweepRun& run, const std::string& format, int jobs);

}  // namespace lockstep
