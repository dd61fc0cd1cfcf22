/// What the scenario claims or expects, held against the answer, on a page.
#pragma once

#include "sim/answer/claim_check.hpp"

namespace lockstep {

class Page;

/// A section with what the terminal says of it (claim_text.hpp); nothing for null.
void add_claim_section(Page& page, const ClaimCheck* claim);

}  // namespace lockstep
