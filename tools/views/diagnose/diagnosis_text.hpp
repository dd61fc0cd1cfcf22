/// What `lockstep diagnose` prints.
#pragma once

#include <string>

#include "sim/measured/diagnosis.hpp"
#include "tools/console/table.hpp"

namespace lockstep {

/// For people: the verdict, then parts, operators, ranks and collectives.
std::string diagnosis_text(const Diagnosis& d, const TextStyle& style);

}  // namespace lockstep
