/// A fabric of any kind, written out as a graph.
#pragma once

#include "topologies/fabrics/fabric.hpp"
#include "topologies/graph/cluster_graph.hpp"

namespace lockstep {

/// A copy of a drawn fabric's graph; a drawing of a whole tree, in time and memory in proportion
/// to its cables. Under spray, a tree's parallel cables name the same bundle as `fabric_link`.
ClusterGraph graph_of(const Fabric& fabric);

}  // namespace lockstep
