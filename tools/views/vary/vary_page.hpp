/// The answers over one or two values of a scenario, as a page.
#pragma once

#include <string>

#include "tools/views/report/input_tables.hpp"
#include "tools/views/vary/vary.hpp"

namespace lockstep {

/// The page of `lockstep run --vary --report`: the number that the kind of answer is about over the
/// values, with its interval; for two axes a line for each value of the second; small charts of the
/// other numbers; a table of all points. Of several collectives the same of each. Throws UsageError
/// without a chart library (assets.hpp).
/// The sections of what it rests on are there where the basis is given.
std::string vary_page(const Varied& varied, const AnswerBasis& basis = {});

/// What the page says that the answers rest on: the axes, the scenario with all values of these,
/// and what was assumed for any point. `written`: the scenario; null: the first answer has it.
AnswerBasis varied_basis(const Varied& varied, const WrittenScenario& written,
                         const PresetStore& presets);

}  // namespace lockstep
