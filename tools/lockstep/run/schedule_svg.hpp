/// A drawing of the pipeline schedule of a step: a row per rank, a rectangle per pass, time from
/// left to right.
#pragma once

#include <string>

#include "sim/step/step_report.hpp"

namespace lockstep {

/// The replica that the first actors stand for, as SVG text. Passes of odd chunks are paler, and
/// have their micro batch written on them where there is room. Requires a report that recorded its
/// timeline and kept its actors.
std::string schedule_svg(const StepReport& report, const std::string& title);

}  // namespace lockstep
