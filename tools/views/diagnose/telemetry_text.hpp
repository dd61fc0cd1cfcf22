/// Monitors' logs beside the prediction, for people: `lockstep diagnose --telemetry`.
#pragma once

#include <string>
#include <vector>

#include "sim/measured/telemetry.hpp"
#include "tools/console/table.hpp"

namespace lockstep {

/// Power, clock, the slow GPUs and notes.
std::string telemetry_text(const Telemetry& telemetry, const TextStyle& style);

/// What they say of clocks, slow GPUs and what was left out, a sentence each.
std::vector<std::string> telemetry_words(const Telemetry& t);

}  // namespace lockstep
