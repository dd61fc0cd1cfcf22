/// How many cables join a fabric's switches with each other.
#pragma once

#include <cstdint>

#include "topologies/fabrics/placement.hpp"
#include "topologies/spec/fabric_spec.hpp"

namespace lockstep {

/// Of all planes, faults aside; cables between NICs and switches are not counted. A tree costs the
/// same for any number of nodes, another fabric is drawn. Requires that check() finds nothing.
std::uint32_t switch_cables(const FabricSpec& fabric, int nodes, const NicPorts& ports);

}  // namespace lockstep
