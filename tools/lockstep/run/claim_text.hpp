/// A claim of a scenario, held against the answer, for people.
#pragma once

#include <string>

#include "sim/answer/claim_check.hpp"
#include "tools/console/table.hpp"

namespace lockstep {

std::string claim_text(const ClaimCheck& check, const TextStyle& style);

}  // namespace lockstep
