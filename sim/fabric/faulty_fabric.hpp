/// A fabric with parts that are broken or slow, beside the same one with none.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "topologies/fabrics/fabric.hpp"

namespace lockstep {

/// A fault that breaks nothing: a fabric with faults is drawn cable by cable, and with this one all
/// cables are whole.
FabricFault no_fault();

/// "switch spine 1 goes down", "cable leaf 0 to spine 1 keeps 50 % of its rate".
std::string words_of_fault(const FabricFault& fault);

/// The same fabric with nothing broken; drawn cable by cable if `fabric` has faults.
Fabric without_faults(const Fabric& fabric);

/// The part that faults leave of each link's capacity while routes do not know of them, by link of
/// `before`. Parallel cables count as one bundle. Requires before.is_drawn().
std::vector<double> capacity_left(const Fabric& before, std::span<const FabricFault> faults);

}  // namespace lockstep
