// A graph that was read from a file, or that the caller made.
#include <fmt/format.h>

#include "topologies/fabrics/drawing.hpp"

namespace lockstep {

std::optional<FabricProblem> check_file(const FabricPlan& plan) {
  if (!plan.spec.graph) {
    return FabricProblem{"file", "nothing", "the name of a file that draws the fabric"};
  }
  const ClusterGraph& graph = *plan.spec.graph;
  if (graph.nodes() < plan.nodes) {
    return FabricProblem{"nodes", fmt::format("{}", plan.nodes),
                         fmt::format("at most {}, those of {}", graph.nodes(), plan.spec.file)};
  }
  for (int node = 0; node < plan.nodes; ++node) {
    if (graph.nics(node) >= plan.nics) continue;
    return FabricProblem{"file", fmt::format("{} NIC ports on node {}", graph.nics(node), node),
                         fmt::format("at least {}, as the cluster's nodes have", plan.nics)};
  }
  for (const GraphCable& cable : graph.cables()) {
    if (cable.a >= graph.port_count() || cable.b >= graph.port_count()) continue;
    return FabricProblem{"file",
                         fmt::format("a cable from {} to {}", graph.vertex_name(cable.a),
                                     graph.vertex_name(cable.b)),
                         "cables with a switch at one end at least"};
  }
  return check_drawing_size("file", graph.vertex_count(),
                            std::int64_t{graph.vertex_count()} - graph.port_count(),
                            static_cast<std::int64_t>(graph.cables().size()));
}

FabricDrawing draw_file(const FabricPlan& plan) {
  const ClusterGraph& graph = *plan.spec.graph;
  return {.vertices = {graph.vertices().begin(), graph.vertices().end()},
          .cables = {graph.cables().begin(), graph.cables().end()}};
}

}  // namespace lockstep
