/// A site's power limit that a job does not keep: said before anything else, in every form.
#pragma once

#include <string>

#include "sim/power/step_power.hpp"

namespace lockstep {

/// "EXCEEDED: the site draws 227.1 MW, 77.1 MW (51.4 %) above its limit of 150 MW"; empty where the
/// limit is kept, or there is none.
std::string limit_warning(const StepPower& power, const PowerSpec& spec);
std::string limit_warning(Watts peak, const PowerSpec& spec);

/// "21.22 MW", "10.19 kW", "650 W".
std::string power_text(Watts w);

}  // namespace lockstep
