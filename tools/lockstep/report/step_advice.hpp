/// What would help a step, as a section of its page.
#pragma once

#include "sim/answer/advice.hpp"

namespace lockstep {

class Page;

/// Bars of the gains with their intervals, a table of all changes, and why others cannot be.
void add_advice(Page& page, const Advice& advice);

}  // namespace lockstep
