/// A fabric in an order that its names alone decide: for files whose lines have no order, so that a
/// file with the same lines in another order is the same fabric, link for link.
#pragma once

#include "topologies/formats/drawn_fabric.hpp"

namespace lockstep {

/// Hosts, NICs of a host and switches of a layer in the natural order of their names ("n2" before
/// "n10"), lower layers first, cables by their ends, ports and rates.
DrawnFabric in_canonical_order(const DrawnFabric& fabric);

}  // namespace lockstep
