/// What a site's battery did, in sentences that the table and the page share.
#pragma once

#include <string>
#include <vector>

#include "sim/answer/campaign_answer.hpp"

namespace lockstep {

/// Each begins small and has no full stop: how full it is, whether it kept the grid's power below
/// what it aims at, and what stands in the way. Empty: there is no battery.
std::vector<std::string> battery_words(const SiteAnswer& site);

}  // namespace lockstep
