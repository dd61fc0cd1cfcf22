/// The switch ports of a fabric, which draw by their rates.
#pragma once

#include "models/base/units.hpp"
#include "sim/scenario/read_cluster.hpp"
#include "topologies/fabrics/fabric.hpp"

namespace lockstep {

/// Rates of all switch ports that are bought and draw: links between switches have one at either
/// end, which is one for each direction; links of nodes have one. Of a tree that is only partly
/// filled those uplinks count that its NICs can fill, as idle_cables() has it: a leaf with 4 of 32
/// ports in use has 4 uplinks at 1:1, a spine the other ends of these, cores likewise, and one leaf
/// alone has none. So more nodes never have fewer ports. Its messages still find the whole tree;
/// other fabrics count as they are drawn.
BytesPerSecond switch_ports(const Fabric& fabric);
/// Of the fabric that joins the cluster's nodes; none of a single one.
BytesPerSecond switch_ports(const Cluster& cluster);

}  // namespace lockstep
