/// What a site's battery did and its ramp costs, in sentences that the table and the page share.
#pragma once

#include <string>
#include <vector>

#include "sim/answer/campaign_answer.hpp"

namespace lockstep {

/// Each begins small and has no full stop: how full it is, whether it kept the grid's power below
/// what it aims at, and what stands in the way. Empty: there is no battery.
std::vector<std::string> battery_words(const SiteAnswer& site);

/// What the grid's ramp makes of a restart: "each restart takes 2.1 s longer, ...". Requires a
/// ramp.
std::string restart_ramp_words(const SitePlan& plan);

}  // namespace lockstep
