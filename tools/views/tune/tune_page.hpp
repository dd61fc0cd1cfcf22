/// The layouts that a search found, as a page.
#pragma once

#include <string>

#include "tools/views/report/input_tables.hpp"
#include "tools/views/tune/tune_output.hpp"

namespace lockstep {

class Behind;

/// The page of `lockstep tune --report`: the best layouts with their intervals and ties, the front
/// of time and memory (and money, where there is a price), where each one's time goes, what was
/// left out and why. Throws UsageError without a chart library (assets.hpp).
/// The sections of what it rests on are there where the basis is given, and what stands `behind`
/// the figures, of a step with the best layout, where that is.
std::string tune_page(const TuneStudy& study, const AnswerBasis& basis = {},
                      const Behind* behind = nullptr);

}  // namespace lockstep
