#include "topologies/graph/cluster_graph.hpp"

#include <array>
#include <doctest/doctest.h>
#include <set>
#include <string>
#include <vector>

#include "tests/topologies/nic.hpp"
#include "topologies/fabrics/graph_of_fabric.hpp"

namespace lockstep {
namespace {

using test::kNic;

FabricSpec tree(FabricKind kind, Routing routing, int levels) {
  FabricSpec spec;
  spec.kind = kind;
  spec.routing = routing;
  spec.levels = levels;
  spec.leaf_ports_down = 4;
  return spec;
}

/// One and several leaves, units and pods, full and partly filled, with parallel links or without.
std::vector<Fabric> fabrics() {
  std::vector<Fabric> out;
  for (const FabricKindInfo& kind : fabric_kinds()) {
    if (kind.always_drawn) continue;
    for (const RoutingInfo& routing : routings()) {
      if (routing.is_static) continue;
      for (const int levels : {2, 3}) {
        for (const int nodes : {1, 2, 7, 16, 19}) {
          FabricSpec spec = tree(kind.kind, routing.routing, levels);
          out.emplace_back(spec, nodes, 2, kNic);
          spec.switch_ports = 16;
          spec.leaf_oversubscription = 1.5;
          out.emplace_back(spec, nodes, 2, kNic);
        }
      }
    }
  }
  return out;
}

TEST_CASE("every fabric: cables of a link add up to its capacity, and no link is left out") {
  for (const Fabric& fabric : fabrics()) {
    const ClusterGraph graph = graph_of(fabric);
    std::vector<BytesPerSecond> sum(fabric.link_count());
    for (std::uint32_t i = 0; i < graph.link_count(); ++i) {
      sum.at(graph.fabric_link()[i]) += graph.capacity()[i];
    }
    for (FabricLink link = 0; link < fabric.link_count(); ++link) {
      CHECK(sum[link] / fabric.capacity(link) == doctest::Approx(1.0));
    }
  }
}

TEST_CASE("every fabric: all vertices reach each other, and each has a name of its own") {
  for (const Fabric& fabric : fabrics()) {
    const ClusterGraph graph = graph_of(fabric);
    CHECK(graph.strong_components() == 1);
    std::set<std::string> names;
    for (Vertex v = 0; v < graph.vertex_count(); ++v) names.insert(graph.vertex_name(v));
    CHECK(names.size() == graph.vertex_count());
  }
}

/// Vertices that cables of `link` lead to from any of `from`.
std::set<Vertex> step(const ClusterGraph& graph, const std::set<Vertex>& from, FabricLink link) {
  std::set<Vertex> to;
  for (const Vertex v : from) {
    for (std::uint32_t i = graph.first_link()[v]; i < graph.first_link()[v + 1]; ++i) {
      if (graph.fabric_link()[i] == link) to.insert(graph.target()[i]);
    }
  }
  return to;
}

TEST_CASE("every fabric: a route walks cables from NIC to NIC, and no path is shorter") {
  for (const Fabric& fabric : fabrics()) {
    const ClusterGraph graph = graph_of(fabric);
    const int ports = fabric.nodes() * fabric.nics_per_node();
    std::vector<RouteHop> hops;
    for (int from = 0; from < ports; ++from) {
      const std::vector<int> distance = graph.hops_from(graph.nic_port(from / 2, from % 2));
      for (int to = 0; to < ports; ++to) {
        hops.clear();
        fabric.route(from / 2, from % 2, to / 2, to % 2, 11, hops);
        const Vertex end = graph.nic_port(to / 2, to % 2);
        CHECK(distance[end] == static_cast<int>(hops.size()));
        std::set<Vertex> at{graph.nic_port(from / 2, from % 2)};
        for (const RouteHop& hop : hops) at = step(graph, at, hop.link);
        CHECK(at == std::set{end});
      }
    }
  }
}

TEST_CASE("bisection: a non-blocking tree has all of it, o:1 leaves 1/o") {
  for (const FabricKind kind : {FabricKind::fat_tree, FabricKind::rail_optimised}) {
    for (const int levels : {2, 3}) {
      for (const double over : {1.0, 2.0, 4.0}) {
        FabricSpec spec = tree(kind, Routing::spray, levels);
        spec.leaf_oversubscription = over;
        const Fabric fabric(spec, 32, 2, kNic);
        const double share = graph_of(fabric).bisection() / (16 * 2 * kNic);
        CHECK(share == doctest::Approx(1 / over));
      }
    }
  }
}

TEST_CASE("bisection: between pods, oversubscription of leaf and spine multiply") {
  FabricSpec spec = tree(FabricKind::fat_tree, Routing::ecmp, 3);
  spec.leaf_oversubscription = 2;
  spec.spine_oversubscription = 3;
  spec.pod_leaves = 6;
  const Fabric fabric(spec, 24, 2, kNic);  // two pods of 6 leaves of 2 nodes
  REQUIRE(fabric.counts().pods == 2);
  const double share = graph_of(fabric).bisection() / (12 * 2 * kNic);
  CHECK(share == doctest::Approx(1.0 / 6));
}

TEST_CASE("max_flow: one NIC sends at its own rate, and nothing where nobody receives") {
  const Fabric fabric(tree(FabricKind::fat_tree, Routing::spray, 2), 8, 2, kNic);
  const ClusterGraph graph = graph_of(fabric);
  const std::array one{graph.nic_port(0, 0)};
  const std::array others{graph.nic_port(5, 0), graph.nic_port(6, 1)};
  CHECK(graph.max_flow(one, others) == kNic);
  CHECK(graph.max_flow(others, one) == kNic);
  CHECK(graph.max_flow(one, {}) == BytesPerSecond{});
}

}  // namespace
}  // namespace lockstep
