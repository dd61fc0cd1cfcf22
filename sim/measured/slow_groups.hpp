/// Which process groups' calls stand out, and whose links they share.
#pragma once

#include <span>
#include <vector>

#include "sim/measured/diagnosis.hpp"
#include "sim/scenario/scenario.hpp"

namespace lockstep {

/// Groups whose calls take longer than those of others that call the same: a link or a card is slow
/// there. `step_s`: of the recording; what costs less than half a per cent of it is left out. The
/// dearest first.
std::vector<SlowGroup> slow_groups(std::span<const DiagnosedCall> calls, const Scenario& scenario,
                                   double step_s);

}  // namespace lockstep
