/// What would help, as a section of a step's page or as a page of its own.
#pragma once

#include <string>

#include "sim/answer/advice.hpp"

namespace lockstep {

class Page;

/// Bars of the gains with their intervals, a table of all changes, and why others cannot be.
void add_advice(Page& page, const Advice& advice);
/// The page of `lockstep run --advise --report` of what is no step. Throws UsageError without a
/// chart library (assets.hpp).
std::string advice_page(const Advice& advice);

}  // namespace lockstep
