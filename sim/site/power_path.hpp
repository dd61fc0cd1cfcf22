/// What a path of banks, some of their units down, brings to the nodes.
#pragma once

#include <span>
#include <vector>

#include "models/base/units.hpp"
#include "sim/scenario/site_spec.hpp"

namespace lockstep {

struct PathDelivery {
  int nodes = 0;     ///< that have a way to the outside
  double share = 1;  ///< of what they want, for all alike
};

/// Units of a bank share what goes through it. Each node wants `per_node`; nodes get the same share
/// of it, the largest for which capacities suffice (by maximum flow, within 1e-9).
/// `down`: broken units, by part.
PathDelivery delivered(std::span<const PowerPart> path, std::span<const int> down, Watts per_node);

/// The most that gets to all nodes together, whatever they want.
Watts deliverable(std::span<const PowerPart> path, std::span<const int> down);

/// Nodes that the path feeds when nothing is broken.
int fed_nodes(std::span<const PowerPart> path);

}  // namespace lockstep
