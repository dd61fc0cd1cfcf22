/// Changes that laws make of a plan's document.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace lockstep {

/// Halves every number under a key that begins with "usd_per_"; says how many there were.
int halve_prices(nlohmann::ordered_json& value);

/// Changes the object `into` as a candidate's scenario changes the plan's: objects member by
/// member, everything else whole.
void merge_changes(nlohmann::ordered_json& into, const nlohmann::ordered_json& from);

}  // namespace lockstep
