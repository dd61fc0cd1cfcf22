#include "sim/answer/topology_of_cluster.hpp"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "topologies/fabrics/drawn_fabric.hpp"
#include "topologies/fabrics/graph_of_fabric.hpp"

namespace lockstep {
namespace {

/// Cables that faults have taken from the fabric.
std::vector<GraphCable> missing_cables(const Cluster& cluster, const NicPorts& ports,
                                       const ClusterGraph& graph) {
  if (cluster.fabric.faults.empty()) return {};
  FabricSpec whole = cluster.fabric;
  whole.faults.clear();
  const auto intact = draw_fabric(whole, cluster.nodes, ports.count, ports.bandwidth);
  // Faults leave all switches and NICs where they are.
  std::map<std::pair<Vertex, Vertex>, int> left;
  const auto ends = [](const GraphCable& cable) { return std::minmax({cable.a, cable.b}); };
  for (const GraphCable& cable : graph.cables()) ++left[ends(cable)];
  std::vector<GraphCable> out;
  for (const GraphCable& cable : intact->cables()) {
    if (--left[ends(cable)] < 0) out.push_back(cable);
  }
  return out;
}

/// All that a reader of the drawing needs in order to find the same answers.
FabricCarriage carriage_of(const Cluster& cluster) {
  const FabricSpec& fabric = cluster.fabric;
  FabricCarriage out;
  if (fabric.routing != Routing::tables) out.routing = fabric.routing;
  if (fabric.routing == Routing::ecmp) {
    out.hash_seed = fabric.hash_seed;
    if (fabric.hash_draw != 1) out.hash_draw = fabric.hash_draw;
    out.queue_pairs = fabric.queue_pairs;
  }
  if (fabric.pxn) out.pxn = true;
  out.nonminimal_share = fabric.nonminimal_share;
  out.switch_latency = fabric.switch_latency;
  // A transport that a scenario refines is no preset, and has no name for others.
  if (!fabric.own_transport && !cluster.node.own_transport) out.transport = cluster.transport.name;
  return out;
}

}  // namespace

TopologyInput fabric_of_cluster(WrittenCluster from, std::string source) {
  const Cluster& cluster = from.cluster;
  const NicPorts ports = nic_ports(cluster.node);
  // A Fabric of a drawn kind would find all its routes, too.
  DrawnFabric out = drawn_fabric(
      is_drawn(cluster.fabric)
          ? *draw_fabric(cluster.fabric, cluster.nodes, ports.count, ports.bandwidth)
          : graph_of(Fabric(cluster.fabric, cluster.nodes, ports.count, ports.bandwidth)),
      std::move(source));
  out.down = missing_cables(cluster, ports, out.graph);
  out.assumptions = cluster.assumptions;
  out.carriage = carriage_of(cluster);
  if (cluster.fabric.routing == Routing::tables) {
    out.assumptions.push_back(
        "forwarding tables stay in " + cluster.fabric.tables +
        R"(: a scenario names them beside the fabric, as "tables" with "routing": "tables")");
  }
  return {.fabric = std::move(out),
          .cluster = std::move(from.cluster),
          .written = std::move(from.written)};
}

}  // namespace lockstep
