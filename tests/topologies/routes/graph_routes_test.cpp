#include "topologies/routes/graph_routes.hpp"

#include <cmath>
#include <doctest/doctest.h>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/near.hpp"
#include "tests/topologies/nic.hpp"
#include "topologies/fabrics/graph_of_fabric.hpp"

namespace lockstep {
namespace {

using test::kNic;

std::vector<RouteHop> route(const GraphRoutes& routes, Vertex from, Vertex to,
                            std::uint64_t queue_pair = 0) {
  std::vector<RouteHop> hops;
  routes.route(from, to, queue_pair, hops);
  return hops;
}

/// Trees of one and several leaves and pods, full and partly filled, with parallel links or
/// without.
std::vector<FabricSpec> trees(Routing routing) {
  std::vector<FabricSpec> out;
  for (const FabricKind kind :
       {FabricKind::ideal, FabricKind::fat_tree, FabricKind::rail_optimised}) {
    for (const int levels : {2, 3}) {
      FabricSpec spec;
      spec.kind = kind;
      spec.routing = routing;
      spec.levels = levels;
      spec.leaf_ports_down = 4;
      out.push_back(spec);
      spec.switch_ports = 16;
      spec.leaf_oversubscription = 1.5;
      out.push_back(spec);
    }
  }
  return out;
}

TEST_CASE("ECMP over the graph of a tree takes the links that the tree's arithmetic takes") {
  for (FabricSpec spec : trees(Routing::ecmp)) {
    for (const HashSeed seed : {HashSeed::per_switch, HashSeed::shared}) {
      for (const int queue_pairs : {1, 3}) {
        const int draw = queue_pairs;  // another one for each
        spec.hash_seed = seed;
        spec.hash_draw = draw;
        spec.queue_pairs = queue_pairs;
        const Fabric fabric(spec, 19, 2, kNic);
        const auto graph = std::make_shared<const ClusterGraph>(graph_of(fabric));
        const GraphRoutes routes(graph, {.routing = Routing::ecmp,
                                         .hash_seed = seed,
                                         .hash_draw = draw,
                                         .queue_pairs = queue_pairs});
        for (Vertex from = 0; from < 38; ++from) {
          for (Vertex to = 0; to < 38; ++to) {
            std::map<FabricLink, double> expected, found;
            std::vector<RouteHop> hops;
            const auto port = [](Vertex v) { return static_cast<int>(v); };
            fabric.route(port(from) / 2, port(from) % 2, port(to) / 2, port(to) % 2, 7, hops);
            for (const RouteHop& hop : hops) expected[hop.link] += hop.share;
            for (const RouteHop& hop : route(routes, from, to, 7)) {
              found[graph->fabric_link()[hop.link]] += hop.share;
            }
            CHECK(found == expected);
            CHECK(routes.switches_crossed(from, to) ==
                  fabric.switches_crossed(port(from) / 2, port(from) % 2, port(to) / 2,
                                          port(to) % 2));
          }
        }
      }
    }
  }
}

TEST_CASE("spray over the graph of a tree loads each bundle as the tree's arithmetic does") {
  for (const FabricSpec& spec : trees(Routing::spray)) {
    const Fabric fabric(spec, 19, 2, kNic);
    const auto graph = std::make_shared<const ClusterGraph>(graph_of(fabric));
    for (const Routing routing : {Routing::spray, Routing::adaptive}) {
      const GraphRoutes routes(graph, {.routing = routing});
      std::vector<double> expected(fabric.link_count()), found(fabric.link_count());
      std::vector<double> cable(graph->link_count());
      std::vector<RouteHop> hops;
      for (int from = 0; from < 38; ++from) {
        for (int to = 0; to < 38; ++to) {
          fabric.route(from / 2, from % 2, to / 2, to % 2, 0, hops);
          for (const RouteHop& hop :
               route(routes, static_cast<Vertex>(from), static_cast<Vertex>(to))) {
            found[graph->fabric_link()[hop.link]] += hop.share;
            cable[hop.link] += hop.share / graph->capacity()[hop.link].base_units();
          }
        }
      }
      for (const RouteHop& hop : hops) expected[hop.link] += hop.share;
      for (FabricLink link = 0; link < fabric.link_count(); ++link) {
        CHECK(found[link] == test::near(expected[link]));
      }
      // Cables of one bundle are equally full.
      std::map<FabricLink, double> first;
      for (GraphLink link = 0; link < graph->link_count(); ++link) {
        const double full =
            first.try_emplace(graph->fabric_link()[link], cable[link]).first->second;
        CHECK(cable[link] == test::near(full));
      }
    }
  }
}

TEST_CASE("a spine with a cable to each of 300 leaves finds the few that lead to a port") {
  // Two ports with two cables each: the first ones both to leaf 0, the others to leaves 298 and
  // 299. Leaf 299 has two cables to the spine.
  std::vector<GraphVertex> vertices{{.name = "here", .level = 0, .node = 0, .nic = 0},
                                    {.name = "there", .level = 0, .node = 1, .nic = 0},
                                    {.name = "spine", .level = 2}};
  constexpr Vertex kSpine = 2, kFirst = 3, kLeaves = 300;
  std::vector<GraphCable> cables;
  for (Vertex leaf = 0; leaf < kLeaves; ++leaf) {
    vertices.push_back({.name = "leaf " + std::to_string(leaf), .level = 1});
    cables.push_back({.a = kSpine, .b = kFirst + leaf, .capacity = kNic});
  }
  cables.push_back({.a = kFirst + kLeaves - 1, .b = kSpine, .capacity = kNic});
  for (const auto& [port, leaf] :
       {std::pair{0U, 0U}, std::pair{0U, 0U}, std::pair{1U, 299U}, std::pair{1U, 298U}}) {
    cables.push_back({.a = port, .b = kFirst + leaf, .capacity = kNic});
  }
  const auto graph = std::make_shared<const ClusterGraph>(vertices, cables);
  const GraphRoutes routes(graph, {.routing = Routing::spray});
  double to_298 = 0, to_299 = 0, into_port = 0;
  for (const RouteHop& hop : route(routes, 0, 1)) {
    const Vertex from = graph->source()[hop.link], to = graph->target()[hop.link];
    if (from == kSpine && to == kFirst + 298) to_298 += hop.share;
    if (from == kSpine && to == kFirst + 299) to_299 += hop.share;
    if (to == 1) into_port += hop.share;
    CHECK((from != kSpine || to >= kFirst + 298));
  }
  CHECK(to_298 == test::near(1.0 / 3));
  CHECK(to_299 == test::near(2.0 / 3));
  CHECK(into_port == test::near(1.0));
  // Back, both cables of the port hang on one leaf, to which the spine has one cable.
  double to_0 = 0;
  for (const RouteHop& hop : route(routes, 1, 0)) {
    if (graph->source()[hop.link] != kSpine) continue;
    CHECK(graph->target()[hop.link] == kFirst);
    to_0 += hop.share;
  }
  CHECK(to_0 == test::near(1.0));
}

/// Knuth's MMIX generator.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint32_t below(std::uint32_t n) {
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    return static_cast<std::uint32_t>(state_ >> 33U) % n;
  }

 private:
  std::uint64_t state_;
};

/// Switches in a random tree with random cables besides, ports with one or two cables, capacities
/// of 1 to 4 NICs; groups as they fall.
std::shared_ptr<const ClusterGraph> random_graph(std::uint64_t seed) {
  Random random(seed);
  const Vertex ports = 2 + random.below(10), switches = 1 + random.below(14);
  std::vector<GraphVertex> vertices;
  for (Vertex v = 0; v < ports; ++v) {
    vertices.push_back(
        {.name = "port " + std::to_string(v), .level = 0, .node = static_cast<int>(v), .nic = 0});
  }
  for (Vertex v = 0; v < switches; ++v) {
    vertices.push_back({.name = "switch " + std::to_string(v),
                        .level = static_cast<int>(1 + random.below(3)),
                        .group = static_cast<int>(random.below(4))});
  }
  std::vector<GraphCable> cables;
  const auto join = [&](Vertex a, Vertex b) {
    if (a != b) cables.push_back({.a = a, .b = b, .capacity = (1 + random.below(4)) * kNic});
  };
  for (Vertex v = 1; v < switches; ++v) join(ports + v, ports + random.below(v));
  for (Vertex v = 0; v < 2 * switches; ++v) {
    join(ports + random.below(switches), ports + random.below(switches));
  }
  for (Vertex v = 0; v < ports; ++v) {
    join(v, ports + random.below(switches));
    if (random.below(3) == 0) join(v, ports + random.below(switches));
  }
  return std::make_shared<const ClusterGraph>(std::move(vertices), std::move(cables));
}

/// What leaves each vertex less what arrives there.
std::vector<double> surplus(const ClusterGraph& graph, const std::vector<RouteHop>& hops) {
  std::vector<double> out(graph.vertex_count());
  for (const RouteHop& hop : hops) {
    out[graph.source()[hop.link]] += hop.share;
    out[graph.target()[hop.link]] -= hop.share;
  }
  return out;
}

TEST_CASE("random graphs: whatever the routing, all of a message leaves, passes on and arrives") {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    const auto graph = random_graph(seed);
    for (const RoutePolicy& policy :
         {RoutePolicy{.routing = Routing::spray}, RoutePolicy{.routing = Routing::adaptive},
          RoutePolicy{.routing = Routing::adaptive, .nonminimal_share = 0.3},
          RoutePolicy{.routing = Routing::adaptive, .nonminimal_share = 1},
          RoutePolicy{.routing = Routing::ecmp, .queue_pairs = 4}}) {
      const GraphRoutes routes(graph, policy);
      for (Vertex from = 0; from < graph->port_count(); ++from) {
        for (Vertex to = 0; to < graph->port_count(); ++to) {
          const std::vector<RouteHop> hops = route(routes, from, to, seed);
          std::vector<double> expected(graph->vertex_count());
          if (from != to) expected[from] = 1, expected[to] = -1;
          const std::vector<double> found = surplus(*graph, hops);
          for (Vertex v = 0; v < graph->vertex_count(); ++v) {
            CHECK(std::abs(found[v] - expected[v]) < 1e-12);
          }
          std::map<GraphLink, int> times;
          for (const RouteHop& hop : hops) {
            CHECK(hop.share > 0);
            CHECK(++times[hop.link] == 1);
          }
        }
      }
    }
  }
}

TEST_CASE("random graphs: hashed and sprayed messages take shortest ways, past no other NIC") {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    const auto graph = random_graph(seed);
    const GraphRoutes hashed(graph, {.routing = Routing::ecmp});
    const GraphRoutes sprayed(graph, {.routing = Routing::spray});
    for (Vertex from = 0; from < graph->port_count(); ++from) {
      for (Vertex to = 0; to < graph->port_count(); ++to) {
        if (from == to) continue;
        const auto path = route(hashed, from, to, seed);
        CHECK(path.size() == static_cast<std::size_t>(hashed.switches_crossed(from, to)) + 1);
        Vertex at = from;
        for (const RouteHop& hop : path) {
          CHECK(graph->source()[hop.link] == at);
          at = graph->target()[hop.link];
          CHECK((at == to || at >= graph->port_count()));
        }
        CHECK(at == to);
        // Shares times links: the mean length.
        double length = 0;
        for (const RouteHop& hop : route(sprayed, from, to)) length += hop.share;
        CHECK(length == test::near(static_cast<double>(path.size())));
      }
    }
  }
}

/// Two leaves, each with a port; spines between them with these capacities up and down.
std::shared_ptr<const ClusterGraph> diamond(const std::vector<std::pair<double, double>>& spines) {
  std::vector<GraphVertex> vertices{{.name = "a", .level = 0, .node = 0, .nic = 0},
                                    {.name = "b", .level = 0, .node = 1, .nic = 0},
                                    {.name = "leaf a", .level = 1},
                                    {.name = "leaf b", .level = 1}};
  std::vector<GraphCable> cables{{.a = 0, .b = 2, .capacity = kNic},
                                 {.a = 1, .b = 3, .capacity = kNic}};
  for (const auto& [up, down] : spines) {
    const auto spine = static_cast<Vertex>(vertices.size());
    vertices.push_back({.name = "spine " + std::to_string(spine), .level = 2});
    cables.push_back({.a = 2, .b = spine, .capacity = up * kNic});
    cables.push_back({.a = spine, .b = 3, .capacity = down * kNic});
  }
  return std::make_shared<const ClusterGraph>(std::move(vertices), std::move(cables));
}

TEST_CASE("adaptive: ways get parts in proportion to their narrowest cable, spray splits evenly") {
  const auto graph = diamond({{1, 1}, {1, 0.5}, {0.25, 4}, {2, 0.25}});
  const auto shares = [&](Routing routing) {
    std::vector<double> up;
    for (const RouteHop& hop : route(GraphRoutes(graph, {.routing = routing}), 0, 1)) {
      if (graph->source()[hop.link] == 2) up.push_back(hop.share);
    }
    return up;
  };
  const std::vector<double> even = shares(Routing::spray);
  REQUIRE(even.size() == 4);
  for (const double share : even) CHECK(share == test::near(0.25));
  const std::vector<double> weighted = shares(Routing::adaptive);
  REQUIRE(weighted.size() == 4);
  CHECK(weighted[0] == test::near(0.5));
  CHECK(weighted[1] == test::near(0.25));
  CHECK(weighted[2] == test::near(0.125));
  CHECK(weighted[3] == test::near(0.125));
}

TEST_CASE("queue pairs: many of them approach spraying, one takes a single path") {
  const auto graph = diamond({{1, 1}, {1, 1}, {1, 1}, {1, 1}});
  const auto busiest = [&](int queue_pairs) {
    double most = 0;
    const GraphRoutes routes(graph, {.routing = Routing::ecmp, .queue_pairs = queue_pairs});
    for (const RouteHop& hop : route(routes, 0, 1)) {
      if (graph->source()[hop.link] == 2) most = std::max(most, hop.share);
    }
    return most;
  };
  CHECK(busiest(1) == 1);
  CHECK(busiest(16) < 1);
  // 1024 balls in 4 bins: 256 each with a deviation of sqrt(1024 * 3 / 16) = 14; 4.5 of them.
  CHECK(busiest(1024) < (256 + 63) / 1024.0);
}

TEST_CASE("forwarding tables: a message goes where they say, and not where they say nothing") {
  const auto graph = diamond({{1, 1}, {1, 1}});
  const auto link = [&](Vertex from, Vertex to) {
    GraphLink i = graph->first_link()[from];
    while (graph->target()[i] != to) ++i;
    return i;
  };
  auto tables = std::make_shared<ForwardingTables>(*graph);
  tables->set(2, 1, link(2, 5));
  tables->set(5, 1, link(5, 3));
  tables->set(3, 1, link(3, 1));
  const GraphRoutes routes(graph, {.tables = tables});
  CHECK(routes.reaches(0, 1));
  CHECK_FALSE(routes.reaches(1, 0));
  std::vector<GraphLink> found;
  for (const RouteHop& hop : route(routes, 0, 1)) found.push_back(hop.link);
  CHECK(found == std::vector{link(0, 2), link(2, 5), link(5, 3), link(3, 1)});
  CHECK(routes.switches_crossed(0, 1) == 3);
  tables->set(5, 1, link(5, 2));  // back, and round for ever
  CHECK_FALSE(GraphRoutes(graph, {.tables = tables}).reaches(0, 1));
}

TEST_CASE("distances: equal to breadth-first search of the whole graph, for more than 64 leaves") {
  FabricSpec spec;
  spec.kind = FabricKind::torus;
  spec.torus = {5, 4, 4};
  const Fabric fabric(spec, 80, 1, kNic);
  const ClusterGraph& graph = *fabric.graph();
  const PortDistances distances(graph);
  CHECK(distances.classes() == 80);
  for (Vertex port = 0; port < graph.port_count(); ++port) {
    const std::vector<int> hops = graph.hops_from(port);
    for (Vertex v = graph.port_count(); v < graph.vertex_count(); ++v) {
      CHECK(distances.row(port)[v - graph.port_count()] == hops[v]);
    }
  }
}

}  // namespace
}  // namespace lockstep
