/// Random sites of runs: what surrounds the racks.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "sim/core/random.hpp"

namespace lockstep {

/// Adds "run.site" to a drawn run of weeks, "power" and "cost" where it has none: weather, a grid
/// with curtailments, a battery, sun and wind, a plant of units that fail, a path of feeds, UPS,
/// generators and rows, sized around what the job draws, so that each binds in some draws and
/// not in others. What does not fit together the reader refuses.
void add_random_site(RandomStream& random, nlohmann::ordered_json& scenario);

}  // namespace lockstep
