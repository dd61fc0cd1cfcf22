/// A site's power limit that a job does not keep: said before anything else, in every form.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "sim/power/step_power.hpp"

namespace lockstep {

/// "EXCEEDED: the site draws 227.1 MW, 77.1 MW (51.4 %) above its limit of 150 MW"; empty where the
/// limit is kept, or there is none.
std::string limit_warning(const StepPower& power, const PowerSpec& spec);

/// Adds site_limit_w, site_peak_w and site_excess_w (above 0: by how much the limit is exceeded),
/// where there is a limit.
void add_site_limit(const StepPower& power, const PowerSpec& spec, nlohmann::ordered_json& out);

/// "21.22 MW", "10.19 kW", "650 W".
std::string power_text(Watts w);

}  // namespace lockstep
