/// What a fabric leaves open, and what of it comes out otherwise than its words may sound.
#pragma once

#include <string>
#include <vector>

#include "models/spec/hardware.hpp"
#include "topologies/fabrics/fabric.hpp"
#include "topologies/fabrics/placement.hpp"

namespace lockstep {

/// Values without effect on such a fabric; how the leaves of a tree are cabled where that is not
/// plain; of one that was read from a file what that does not tell, and where its cables run at
/// another rate than the NICs of the first `nodes` nodes.
std::vector<std::string> fabric_assumptions(const FabricSpec& fabric, const NodeSpec& node,
                                            int nodes);

/// "fabric: rail_optimised (not given)", or that only changes to it were; empty of one that was
/// `given` and not `assumed` below what was written.
std::string fabric_not_given(const FabricSpec& fabric, bool given, bool assumed);

/// What power and money leave out of a tree that is only partly filled. Empty: nothing. Requires
/// that check() finds nothing.
std::string uncounted_cables(const FabricSpec& fabric, int nodes, const NicPorts& ports);

}  // namespace lockstep
