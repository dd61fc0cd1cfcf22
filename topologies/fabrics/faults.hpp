/// Breaks and slows parts of a drawn fabric.
#pragma once

#include <optional>
#include <vector>

#include "topologies/fabrics/drawing.hpp"

namespace lockstep {

/// Applies the faults in their order; cables that are down leave the drawing, dead switches stay
/// without any. Which cables a random fault hits depends on its seed and the drawing alone.
std::optional<FabricProblem> apply_faults(const std::vector<FabricFault>& faults,
                                          FabricDrawing& drawing);

}  // namespace lockstep
