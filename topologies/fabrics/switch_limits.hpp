/// Whether switches can hold back traffic that the NICs could carry.
#pragma once

#include <string>

#include "topologies/fabrics/fabric.hpp"

namespace lockstep {

/// Why switches of the fabric may slow messages down that its NICs alone would carry at full rate,
/// in words that fit behind "the fabric has": "uplinks oversubscribed 8:1", "hashed paths". Empty:
/// they never do, since the fabric is ideal, a single switch, or a whole tree with full bisection
/// whose switches spread every message over all shortest paths. Requires that check() finds
/// nothing.
std::string switch_limits(const FabricSpec& spec, int nodes, int nics_per_node,
                          BytesPerSecond nic_bandwidth);
/// Of a fabric that is built.
std::string switch_limits(const Fabric& fabric);

}  // namespace lockstep
