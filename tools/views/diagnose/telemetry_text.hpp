/// Monitors' logs beside the prediction, for people: `lockstep diagnose --telemetry`.
#pragma once

#include <string>

#include "sim/measured/telemetry.hpp"
#include "tools/console/table.hpp"

namespace lockstep {

/// Power, clock, the slow GPUs and notes.
std::string telemetry_text(const Telemetry& telemetry, const TextStyle& style);

}  // namespace lockstep
