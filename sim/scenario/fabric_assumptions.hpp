/// What a fabric that was read from a file leaves open.
#pragma once

#include <string>
#include <vector>

#include "models/spec/hardware.hpp"
#include "topologies/fabrics/fabric.hpp"

namespace lockstep {

/// What the file does not tell, and where its cables run at another rate than the NICs of the first
/// `nodes` nodes; nothing for other kinds of fabric.
std::vector<std::string> fabric_assumptions(const FabricSpec& fabric, const NodeSpec& node,
                                            int nodes);

}  // namespace lockstep
