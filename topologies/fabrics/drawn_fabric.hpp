/// Makes the graph of a fabric that is drawn: its kind's builder for each plane, then its faults.
#pragma once

#include <memory>
#include <optional>

#include "topologies/fabrics/fabric.hpp"
#include "topologies/graph/cluster_graph.hpp"
#include "topologies/routes/graph_routes.hpp"

namespace lockstep {

/// What keeps a drawn fabric from being made, its faults and NICs that cannot reach each other
/// included. Requires single numbers within their bounds.
std::optional<FabricProblem> check_drawn(const FabricSpec& spec, int nodes, int nics_per_node,
                                         BytesPerSecond nic_bandwidth);

/// Requires that check_drawn() finds nothing.
std::shared_ptr<const ClusterGraph> draw_fabric(const FabricSpec& spec, int nodes,
                                                int nics_per_node, BytesPerSecond nic_bandwidth);
RoutePolicy route_policy(const FabricSpec& spec, const ClusterGraph& graph);

}  // namespace lockstep
