// Fabrics without arithmetic routes: what theory says that each kind has and carries.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <doctest/doctest.h>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/topologies/nic.hpp"
#include "tests/topologies/permutations.hpp"
#include "topologies/fabrics/fabric.hpp"
#include "topologies/graph/cluster_graph.hpp"

namespace lockstep {
namespace {

using test::kNic;

FabricSpec of_kind(FabricKind kind, Routing routing = Routing::spray) {
  FabricSpec spec;
  spec.kind = kind;
  spec.routing = routing;
  spec.leaf_ports_down = 4;
  spec.pxn = kind == FabricKind::rail_only;
  return spec;
}

FabricFault dead_switch(const std::string& name) {
  FabricFault fault;
  fault.part = FabricFault::Part::box;
  fault.from = name;
  return fault;
}

FabricFault slow_cable(const std::string& from, const std::string& to, double rate) {
  FabricFault fault;
  fault.from = from;
  fault.to = to;
  fault.rate = rate;
  return fault;
}

/// One of each kind that is always drawn, a tree with planes and one with a dead spine.
std::vector<FabricSpec> drawn_specs(Routing routing) {
  std::vector<FabricSpec> out;
  for (const FabricKind kind : {FabricKind::rail_only, FabricKind::dragonfly,
                                FabricKind::dragonfly_plus, FabricKind::torus}) {
    out.push_back(of_kind(kind, routing));
  }
  out[1].group_switches = 3;
  out[2].group_switches = 3;
  for (const FabricKind kind : {FabricKind::fat_tree, FabricKind::rail_optimised}) {
    FabricSpec spec = of_kind(kind, routing);
    if (!routings()[static_cast<std::size_t>(routing)].is_static) {
      spec.planes = 2;
      out.push_back(spec);
      spec.planes = 1;
    }
    spec.faults = {dead_switch("spine 1")};
    out.push_back(spec);
  }
  return out;
}

TEST_CASE("every drawn fabric: dense links with names of their own, and routes that arrive") {
  for (const RoutingInfo& routing : routings()) {
    // Those need a tree, or a file.
    if (routing.is_static && routing.routing != Routing::minhop) continue;
    for (const FabricSpec& spec : drawn_specs(routing.routing)) {
      CAPTURE(routing.name);
      CAPTURE(static_cast<int>(spec.kind));
      const auto problem = check(spec, 18, 2, kNic);
      if (problem) MESSAGE(problem->field << ": " << problem->found << "; " << problem->allowed);
      REQUIRE_FALSE(problem);
      const Fabric fabric(spec, 18, 2, kNic);
      REQUIRE(fabric.is_drawn());
      std::set<std::string> names;
      for (FabricLink link = 0; link < fabric.link_count(); ++link) {
        names.insert(fabric.link_name(link));
        CHECK(fabric.capacity(link) > BytesPerSecond{});
      }
      CHECK(names.size() == fabric.link_count());
      std::vector<RouteHop> hops;
      for (int from = 0; from < 36; ++from) {
        for (int to = 0; to < 36; ++to) {
          if (from / 2 == to / 2) continue;
          hops.clear();
          fabric.route(from / 2, from % 2, to / 2, to % 2, 5, hops);
          double up = 0, down = 0, length = 0;
          const Vertex end = fabric.graph()->nic_port(to / 2, to % 2);
          for (const RouteHop& hop : hops) {
            if (fabric.graph()->source()[hop.link] < 36) up += hop.share;
            if (fabric.graph()->target()[hop.link] == end) down += hop.share;
            length += hop.share;
          }
          CHECK(up == doctest::Approx(1.0));
          CHECK(down == doctest::Approx(1.0));
          const int switches = fabric.switches_crossed(from / 2, from % 2, to / 2, to % 2);
          CHECK(length >= switches + 1 - 1e-9);
          CHECK(length <= 2 * switches + 4);  // a detour is no longer than two ways
        }
      }
    }
  }
}

TEST_CASE("torus: switches between nodes are the distances around the rings, and one") {
  FabricSpec spec = of_kind(FabricKind::torus);
  for (const std::vector<int>& sides : {std::vector{4, 5}, std::vector{2, 3, 4}}) {
    spec.torus = sides;
    const int depth = sides.size() == 3 ? sides[2] : 1;
    const int nodes = sides[0] * sides[1] * depth;
    const Fabric fabric(spec, nodes, 1, kNic);
    const auto around = [](int a, int b, int n) {
      return std::min(std::abs(a - b), n - std::abs(a - b));
    };
    for (int a = 0; a < nodes; ++a) {
      for (int b = 0; b < nodes; ++b) {
        if (a == b) continue;
        const int distance = around(a / depth / sides[1], b / depth / sides[1], sides[0]) +
                             around(a / depth % sides[1], b / depth % sides[1], sides[1]) +
                             around(a % depth, b % depth, depth);
        CHECK(fabric.switches_crossed(a, 0, b, 0) == distance + 1);
      }
    }
  }
}

TEST_CASE("torus: a shift along a ring of n carries as much as the ring's links do") {
  FabricSpec spec = of_kind(FabricKind::torus);
  spec.torus = {6, 4};
  const Fabric fabric(spec, 24, 1, kNic);
  // Everybody sends two switches on, one way: each link carries two flows.
  for (const double rate : rates(fabric, shift_permutation(24, 8), 0)) {
    CHECK(rate == doctest::Approx(0.5));
  }
  // Three on: both ways are as long, so each link carries 3 halves.
  for (const double rate : rates(fabric, shift_permutation(24, 12), 0)) {
    CHECK(rate == doctest::Approx(1 / 1.5));
  }
}

TEST_CASE("dragonfly: no way between switches is longer than local, global, local") {
  for (const int global_cables : {1, 2, 7}) {
    FabricSpec spec = of_kind(FabricKind::dragonfly);
    spec.leaf_ports_down = 2;
    spec.group_switches = 4;
    spec.global_cables = global_cables;
    const Fabric fabric(spec, 36, 2, kNic);  // 9 groups of 8 NICs: the balanced one of p = 2
    int longest = 0;
    for (int a = 0; a < 36; ++a) {
      for (int b = 0; b < 36; ++b) longest = std::max(longest, fabric.switches_crossed(a, 0, b, 1));
    }
    CHECK(longest ==
          (global_cables < 7 ? 4 : 3));  // 7 from each group to each: no switch lacks one
    // Each switch has 3 cables in its group, and as many others as share the group's globals.
    const ClusterGraph& graph = *fabric.graph();
    CHECK(graph.vertex_count() - graph.port_count() == 36);
    CHECK(graph.cables().size() == 72 + 9 * 6 + 36 * static_cast<std::size_t>(global_cables));
    for (Vertex v = graph.port_count(); v < graph.vertex_count(); ++v) {
      const auto degree = graph.first_link()[v + 1] - graph.first_link()[v];
      CHECK(degree == 2U + 3U + 2U * static_cast<unsigned>(global_cables));
    }
  }
}

TEST_CASE("dragonfly: detours through a third group more than double what two can exchange") {
  FabricSpec spec = of_kind(FabricKind::dragonfly, Routing::adaptive);
  spec.leaf_ports_down = 2;
  spec.group_switches = 4;
  // Each group of 8 NICs sends to the next over the one cable between them: 1/8 each.
  const std::vector<int> next_group = shift_permutation(72, 8);
  spec.nonminimal_share = 0;
  for (const double rate : rates(Fabric(spec, 36, 2, kNic), next_group, 0)) {
    CHECK(rate == doctest::Approx(0.125));
  }
  // All over the 7 other groups alike, none over the cable between the two.
  spec.nonminimal_share = 1;
  const std::vector<double> detoured = rates(Fabric(spec, 36, 2, kNic), next_group, 0);
  CHECK(*std::ranges::min_element(detoured) > 0.25);
}

TEST_CASE("dragonfly+: leaves meet over spines, groups over one cable between spines") {
  FabricSpec spec = of_kind(FabricKind::dragonfly_plus);
  spec.group_switches = 3;
  spec.group_spines = 2;
  const Fabric fabric(spec, 30, 2, kNic);  // 5 groups of 6 nodes, 2 nodes a leaf
  CHECK(fabric.switches_crossed(0, 0, 1, 1) == 1);
  CHECK(fabric.switches_crossed(0, 0, 2, 0) == 3);
  CHECK(fabric.switches_crossed(0, 0, 29, 0) == 4);
  CHECK(fabric.graph()->cables().size() == 60 + 5 * 3 * 2 + 10);
}

TEST_CASE("planes: a sprayed non-blocking tree stays one, and half its planes carry half") {
  for (const FabricKind kind : {FabricKind::fat_tree, FabricKind::rail_optimised}) {
    FabricSpec spec = of_kind(kind);
    spec.planes = 4;
    const std::vector<int> permutation = random_permutation(64, 3);
    const Fabric whole(spec, 32, 2, kNic);
    for (const double rate : rates(whole, permutation, 0)) CHECK(rate == doctest::Approx(1.0));
    std::vector<RouteHop> up;
    whole.nic_ups(3, 1, up);
    CHECK(up.size() == 4);
    for (const RouteHop& hop : up) CHECK(hop.share == 0.25);
    // Two NIC cables of one node gone: the planes left carry half of what it sends.
    spec.faults = {slow_cable("node 0 nic 0", "plane 0 leaf 0", 0),
                   slow_cable("node 0 nic 0", "plane 1 leaf 0", 0)};
    const std::vector<double> broken =
        rates(Fabric(spec, 32, 2, kNic), shift_permutation(64, 4), 0);
    CHECK(broken.front() == doctest::Approx(0.5));
  }
}

TEST_CASE("k dead spines of n leave (n - k) / n to traffic between leaves, whatever the routing") {
  for (const int dead : {1, 2, 3}) {
    for (const Routing routing : {Routing::spray, Routing::adaptive}) {
      FabricSpec spec = of_kind(FabricKind::fat_tree, routing);
      spec.leaf_ports_down = 8;
      for (int s = 0; s < dead; ++s)
        spec.faults.push_back(dead_switch("spine " + std::to_string(s)));
      const Fabric fabric(spec, 16, 2, kNic);  // 4 leaves, 8 spines
      for (const double rate : rates(fabric, shift_permutation(32, 8), 0)) {
        CHECK(rate == doctest::Approx((8.0 - dead) / 8));
      }
    }
  }
}

TEST_CASE("a slow cable: spray waits for it, adaptive routing does not") {
  const auto slowest = [](Routing routing) {
    FabricSpec spec = of_kind(FabricKind::fat_tree, routing);
    spec.leaf_ports_down = 8;
    spec.faults = {slow_cable("leaf 0", "spine 3", 0.25)};
    const std::vector<double> found = rates(Fabric(spec, 16, 2, kNic), shift_permutation(32, 8), 0);
    return *std::ranges::min_element(found);
  };
  CHECK(slowest(Routing::spray) == doctest::Approx(0.25));
  CHECK(slowest(Routing::adaptive) == doctest::Approx(7.25 / 8));
}

TEST_CASE(
    "polarisation: with a shared seed a spine uses one of its uplinks, with its own nearly all") {
  for (const bool drawn : {false, true}) {
    FabricSpec spec = of_kind(FabricKind::fat_tree, Routing::ecmp);
    spec.levels = 3;
    spec.leaf_ports_down = 16;
    spec.pod_leaves = 16;
    // A cable of another pod gone makes the same tree a drawn one.
    if (drawn) spec.faults = {slow_cable("leaf 40", "spine 40", 0)};
    const auto uplinks_used = [&](HashSeed seed) {
      spec.hash_seed = seed;
      const Fabric fabric(spec, 384, 2, kNic);
      std::vector<RouteHop> hops;
      std::set<FabricLink> used;
      FabricLink first = 0;
      for (std::uint64_t qp = 0; qp < 3000; ++qp) {
        hops.clear();
        fabric.route(0, 0, 200, 0, qp, hops);
        if (qp == 0) first = hops.at(1).link;
        if (hops.at(1).link == first) used.insert(hops.at(2).link);
      }
      return used.size();
    };
    CHECK(uplinks_used(HashSeed::shared) == 1);
    // About 190 balls in 16 bins.
    CHECK(uplinks_used(HashSeed::per_switch) == 16);
  }
}

TEST_CASE("rail_only: another rail is reached over NVLink first, and not at all without PXN") {
  FabricSpec spec = of_kind(FabricKind::rail_only);
  const Fabric fabric(spec, 16, 4, kNic);
  std::vector<RouteHop> hops;
  fabric.route(0, 1, 9, 3, 0, hops);
  CHECK(hops.front().link == fabric.nic_up(0, 3));
  CHECK(hops.back().link == fabric.nic_down(9, 3));
  CHECK(fabric.link_name(hops.at(1).link).starts_with("rail 3 leaf 0 to rail 3 spine"));
  hops.clear();
  fabric.route(0, 1, 0, 3, 0, hops);
  CHECK(hops.empty());
  CHECK(fabric.graph()->strong_components() == 4);
  spec.pxn = false;
  const auto problem = check(spec, 16, 4, kNic);
  REQUIRE(problem);
  CHECK(problem->field == "pxn");
  CHECK(problem->allowed.starts_with("true: rails never meet, so that node 0 nic 0 cannot reach"));
  CHECK_FALSE(check(spec, 16, 1, kNic));
}

TEST_CASE("PXN on a rail-optimised tree: a shift by one NIC needs no spine") {
  FabricSpec spec = of_kind(FabricKind::rail_optimised);
  spec.leaf_ports_down = 32;
  spec.leaf_oversubscription = 4;
  // Rank r sends to the next NIC of the next node: without PXN over the spines, at a quarter.
  const std::vector<int> skewed = shift_permutation(256, 9);
  std::vector<double> found = rates(Fabric(spec, 32, 8, kNic), skewed, 0);
  for (const double rate : found) CHECK(rate == doctest::Approx(0.25));
  spec.pxn = true;
  found = rates(Fabric(spec, 32, 8, kNic), skewed, 0);
  CHECK(*std::ranges::min_element(found) == doctest::Approx(1.0));
}

TEST_CASE("random faults: the seed says which cables, and their number how many") {
  FabricSpec spec = of_kind(FabricKind::fat_tree);
  FabricFault fault;
  fault.part = FabricFault::Part::some_cables;
  fault.count = 3;
  const auto cables = [&](std::uint64_t seed) {
    fault.seed = seed;
    spec.faults = {fault};
    const Fabric fabric(spec, 16, 2, kNic);
    std::vector<std::pair<Vertex, Vertex>> out;
    for (const GraphCable& cable : fabric.graph()->cables()) out.emplace_back(cable.a, cable.b);
    return out;
  };
  CHECK(cables(1).size() == 32 + 32 - 3);  // 8 leaves of 4 uplinks
  CHECK(cables(1) == cables(1));
  CHECK(cables(1) != cables(2));
}

TEST_CASE("random faults: they are drawn from cables that no other fault is about") {
  FabricSpec spec = of_kind(FabricKind::fat_tree);
  FabricFault slow;
  slow.part = FabricFault::Part::box;
  slow.from = "spine 0";
  slow.rate = 0.5;
  FabricFault missing;
  missing.part = FabricFault::Part::some_cables;
  missing.count = 6;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    missing.seed = seed;
    spec.faults = {slow, missing};
    CAPTURE(seed);
    if (check(spec, 16, 2, kNic)) continue;  // leaves that no spine joins
    const auto graph = Fabric(spec, 16, 2, kNic).graph();
    // Of 8 leaves with a cable to each of 4 spines; those of the first are at half their rate.
    CHECK(graph->cables().size() == 32 + 32 - 6);
    CHECK(std::ranges::count_if(
              graph->cables(), [](const GraphCable& cable) { return cable.capacity < kNic; }) == 8);
  }
  missing.count = 25;
  spec.faults = {slow, missing};
  const auto problem = check(spec, 16, 2, kNic);
  REQUIRE(problem);
  CHECK(problem->allowed == "0 to 24, the whole cables between switches");
}

struct SpecMistake {
  FabricSpec spec;
  std::string field, found, allowed, nearest;
};

TEST_CASE("check: says which part of a drawn fabric is wrong") {
  std::vector<SpecMistake> mistakes;
  FabricSpec tree = of_kind(FabricKind::fat_tree);
  tree.faults = {dead_switch("spin 1")};
  mistakes.push_back({tree, "faults/0/switch", "\"spin 1\"",
                      "a NIC or switch of this fabric, such as \"node 0 nic 0\" or \"spine 3\"",
                      "spine 1"});
  tree.faults = {dead_switch("spine 1"), slow_cable("leaf 0", "leaf 1", 0)};
  mistakes.push_back({tree, "faults/1/cable", "\"leaf 0 to leaf 1\"",
                      "two that a cable joins; leaf 0 meets node 0 nic 0, node 0 nic 1, "
                      "node 1 nic 0, node 1 nic 1, spine 0, spine 1, spine 2, spine 3",
                      ""});
  tree.faults = {slow_cable("leaf 0", "spine 1", 0.5)};
  tree.faults[0].index = 1;
  mistakes.push_back({tree, "faults/0/index", "1", "0 to 0, the parallel cables there", ""});
  tree.faults = {dead_switch("leaf 0")};
  mistakes.push_back({tree, "faults", "node 0 nic 0 cannot reach node 2 nic 0",
                      "a fabric that joins all NICs within 254 switches", ""});
  FabricSpec groups = of_kind(FabricKind::dragonfly);
  groups.group_switches = 2;
  groups.groups = 3;
  mistakes.push_back({groups, "groups", "3",
                      "at least 4: a group has 2 switches of 4 NIC ports, and there are 32 NICs",
                      ""});
  groups.groups = 4;
  groups.switch_ports = 6;
  mistakes.push_back({groups, "switch_ports", "6",
                      "at least 7: 4 down, 1 to 1 switches of the group, 2 to other groups", ""});
  FabricSpec torus = of_kind(FabricKind::torus);
  torus.torus = {4};
  mistakes.push_back({torus, "torus", "[4]", "two or three sides of 1 to 1024 switches", ""});
  FabricSpec planes = of_kind(FabricKind::dragonfly);
  planes.planes = 2;
  mistakes.push_back({planes, "planes", "2", "1; trees, rails and tori have planes", ""});
  mistakes.push_back({of_kind(FabricKind::file), "file", "nothing",
                      "the name of a file that draws the fabric", ""});
  for (const SpecMistake& mistake : mistakes) {
    const auto problem = check(mistake.spec, 16, 2, kNic);
    REQUIRE(problem);
    CHECK(problem->field == mistake.field);
    CHECK(problem->found == mistake.found);
    CHECK(problem->allowed == mistake.allowed);
    CHECK(problem->nearest == mistake.nearest);
  }
}

TEST_CASE("check: whatever it accepts of a drawn kind can be built") {
  for (const FabricKindInfo& kind : fabric_kinds()) {
    if (!kind.always_drawn || kind.kind == FabricKind::file) continue;
    for (const int down : {1, 2, 7, 64, 65536}) {
      for (const int nodes : {1, 8, 100, 200'000'000}) {
        for (const int switches : {0, 1, 5}) {
          FabricSpec spec = of_kind(kind.kind);
          spec.leaf_ports_down = down;
          spec.group_switches = switches;
          spec.group_spines = switches;
          const bool refused = check(spec, nodes, 1, kNic).has_value();
          CHECK((refused || nodes <= 100));
          if (refused) continue;
          CHECK(Fabric(spec, nodes, 1, kNic).link_count() >= 2U * static_cast<unsigned>(nodes));
        }
      }
    }
  }
}

TEST_CASE("a graph of one's own: a fabric with its nodes, NICs and capacities") {
  std::vector<GraphVertex> vertices;
  for (int node = 0; node < 3; ++node) {
    vertices.push_back(
        {.name = "host " + std::to_string(node), .level = 0, .node = node, .nic = 0});
  }
  vertices.push_back({.name = "box", .level = 1});
  const auto graph = std::make_shared<const ClusterGraph>(
      std::move(vertices), std::vector<GraphCable>{{.a = 0, .b = 3, .capacity = kNic},
                                                   {.a = 1, .b = 3, .capacity = 2 * kNic},
                                                   {.a = 2, .b = 3, .capacity = kNic}});
  const Fabric fabric({}, graph);
  CHECK(fabric.nodes() == 3);
  CHECK(fabric.nics_per_node() == 1);
  CHECK(fabric.capacity(fabric.nic_up(1, 0)) == 2 * kNic);
  CHECK(fabric.link_name(fabric.nic_down(2, 0)) == "host 2 down");
  CHECK(fabric.switches_crossed(0, 0, 2, 0) == 1);
  CHECK(fabric.graph() == graph);
}

}  // namespace
}  // namespace lockstep
