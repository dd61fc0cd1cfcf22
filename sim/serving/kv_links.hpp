/// What keys and values put on the links of a fabric.
#pragma once

#include <span>
#include <vector>

#include "sim/serving/simulate_serving.hpp"
#include "sim/step/site.hpp"

namespace lockstep {

/// Whether the clock of flows holds a load that comes over so long: half a year.
bool clock_holds(std::span<const ServedRequest> requests);

/// The fullest of those that the network has, over that time; links that carried nothing are none.
std::vector<ServingLink> fullest_links(FabricLinks& links, Seconds span);

}  // namespace lockstep
