/// A fabric as it is at one time of a run: what is broken, and whether routes know it yet.
#pragma once

#include <span>

#include "sim/scenario/read_cluster.hpp"
#include "topologies/fabrics/fabric.hpp"

namespace lockstep {

/// The cluster's fabric, with every cable a link of its own where `cables` (so that single ones may
/// fail), and with these faults besides its own, which its routes avoid.
Fabric draw_fabric(const Cluster& cluster, bool cables, std::span<const FabricFault> faults = {});

/// Whether draw_fabric() would join all NICs that the cluster's own fabric joins.
bool can_redraw(const Cluster& cluster, std::span<const FabricFault> faults);

}  // namespace lockstep
