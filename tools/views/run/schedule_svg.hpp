/// A drawing of the pipeline schedule of a step: a row per rank, a rectangle per pass, time from
/// left to right.
#pragma once

#include <string>

#include "sim/answer/step_answer.hpp"
#include "sim/step/step_report.hpp"

namespace lockstep {

/// The replica that the first actors stand for, as SVG text. Passes of odd chunks are paler, and
/// have their micro batch written on them where there is room. Requires a report that recorded its
/// timeline and kept its actors.
std::string schedule_svg(const StepReport& report, const std::string& title);

/// The title of that picture: "llama3_405b on 16,384 GPUs: interleaved, 16 ranks, 16 micro batches
/// of 1, step of 6.92 s".
std::string schedule_title(const RunResult& result);

}  // namespace lockstep
