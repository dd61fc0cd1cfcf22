/// Monitors' logs beside the prediction, for people: `lockstep diagnose --telemetry`.
#pragma once

#include <string>
#include <vector>

#include "sim/measured/telemetry.hpp"
#include "tools/console/table.hpp"

namespace lockstep {

/// Power, clock, the slow GPUs and notes.
std::string telemetry_text(const Telemetry& telemetry, const TextStyle& style);

/// " GPU 5 is slow: its clock is 20 % below the median GPU's, which costs every step 312 ms." for
/// the verdict; empty where none is.
std::string slow_gpu_verdict(const Telemetry& t);

/// What they say of clocks, slow GPUs and what was left out, a sentence each.
std::vector<std::string> telemetry_words(const Telemetry& t);

}  // namespace lockstep
