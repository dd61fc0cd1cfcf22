/// What `lockstep explain` prints.
#pragma once

#include <string>

#include "sim/measured/explanation.hpp"
#include "tools/console/table.hpp"

namespace lockstep {

/// For people: formula, inputs with their sources, interval, assumptions and nearest runs.
std::string explanation_table(const FieldExplanation& e, const TextStyle& style);

}  // namespace lockstep
