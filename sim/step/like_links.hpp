/// Which links carry what the links of a simulated lane carry.
#pragma once

#include <vector>

#include "sim/step/lanes.hpp"
#include "topologies/fabrics/fabric.hpp"

namespace lockstep {

/// By link of the fabric: the one that was simulated for it, which is itself where it was simulated
/// or where no other is like it. Where lane 0 stands for its group (Lanes::first_stands_for_all), a
/// port has that of lane 0, and the cables above a leaf switch have those of the leaf that lanes 0
/// of the same groups are at, as many of each. Cables between spines and a core have none.
std::vector<FabricLink> simulated_links(const Lanes& lanes);

}  // namespace lockstep
