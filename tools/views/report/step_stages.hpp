/// The pipeline stages of a step on its page: their timeline, time and memory; and what kinds of
/// traffic moved over the fabric.
#pragma once

#include "sim/answer/step_answer.hpp"

namespace lockstep {

class Page;

/// Requires stages. The timeline is drawn where the report has one.
void add_stages(Page& page, const RunResult& result);

/// Adds nothing where nothing crossed the fabric.
void add_traffic(Page& page, const StepReport& report);

/// What a job's answer says of money: price, and capital where the scenario says what machines
/// cost.
void add_money(Page& page, const RunResult& result);

}  // namespace lockstep
