/// The switch ports of a fabric, which draw by their rates.
#pragma once

#include "models/base/units.hpp"
#include "sim/scenario/read_cluster.hpp"
#include "topologies/fabrics/fabric.hpp"

namespace lockstep {

/// Rates of all switch ports: links between switches have one at either end, which is one for each
/// direction; links of nodes have one.
BytesPerSecond switch_ports(const Fabric& fabric);
/// Of the fabric that joins the cluster's nodes; none of a single one.
BytesPerSecond switch_ports(const Cluster& cluster);

}  // namespace lockstep
