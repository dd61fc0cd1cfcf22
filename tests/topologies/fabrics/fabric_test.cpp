#include "topologies/fabrics/fabric.hpp"

#include <algorithm>
#include <array>
#include <doctest/doctest.h>
#include <set>
#include <string>
#include <vector>

#include "tests/topologies/nic.hpp"

namespace lockstep {
namespace {

using test::kNic;

FabricSpec quantum2(FabricKind kind, int levels) {
  FabricSpec spec;
  spec.kind = kind;
  spec.levels = levels;
  spec.switch_ports = 64;
  return spec;
}

/// Two levels of 4 nodes a unit, small enough to count by hand.
FabricSpec small(FabricKind kind, Routing routing) {
  FabricSpec spec;
  spec.kind = kind;
  spec.routing = routing;
  spec.leaf_ports_down = 4;
  return spec;
}

std::vector<FabricLink> links_of(const Fabric& fabric, std::array<int, 4> ports,
                                 std::uint64_t queue_pair = 0) {
  std::vector<RouteHop> hops;
  fabric.route(ports[0], ports[1], ports[2], ports[3], queue_pair, hops);
  std::vector<FabricLink> links;
  for (const RouteHop& hop : hops) {
    CHECK(hop.share == 1);
    links.push_back(hop.link);
  }
  return links;
}

struct PublishedFabric {
  int nodes;
  int leaves, spines, cores;
  int leaf_spine_cables, spine_core_cables;
};

// NVIDIA DGX SuperPOD reference architecture for DGX B200, "DGX SuperPOD Architecture", table of
// larger SuperPOD component counts (docs.nvidia.com): 8 NICs a node, switches of 64 ports.
constexpr std::array kSuperPods{
    PublishedFabric{64, 16, 8, 0, 512, 0},
    PublishedFabric{128, 32, 16, 0, 1024, 0},
    PublishedFabric{256, 64, 32, 0, 2048, 0},
    PublishedFabric{512, 128, 128, 64, 4096, 4096},
    PublishedFabric{1024, 256, 256, 128, 8192, 8192},
    PublishedFabric{2048, 512, 512, 256, 16384, 16384},
};

TEST_CASE("fabric_counts: the published SuperPODs have their published switches and cables") {
  for (const PublishedFabric& row : kSuperPods) {
    CAPTURE(row.nodes);
    const FabricSpec spec = quantum2(FabricKind::rail_optimised, row.cores > 0 ? 3 : 2);
    REQUIRE_FALSE(check(spec, row.nodes, 8, kNic));
    const FabricCounts c = Fabric(spec, row.nodes, 8, kNic).counts();
    CHECK(c.leaves == row.leaves);
    CHECK(c.pods * c.spines == row.spines);
    CHECK(c.spines * c.cores == row.cores);
    CHECK(c.leaves * c.leaf_uplinks == row.leaf_spine_cables);
    CHECK(c.pods * c.spines * c.spine_uplinks == row.spine_core_cables);
  }
}

TEST_CASE(
    "fabric_kinds, routings: rows stand in the order of their values, and name their sources") {
  for (std::size_t i = 0; i < fabric_kinds().size(); ++i) {
    CHECK(static_cast<std::size_t>(fabric_kinds()[i].kind) == i);
    CHECK_FALSE(fabric_kinds()[i].source.empty());
  }
  for (std::size_t i = 0; i < routings().size(); ++i) {
    CHECK(static_cast<std::size_t>(routings()[i].routing) == i);
    CHECK_FALSE(routings()[i].source.empty());
  }
}

TEST_CASE("leaf_of: a fat tree keeps a node on one leaf, rails keep a NIC number on one") {
  const Fabric tree(small(FabricKind::fat_tree, Routing::spray), 5, 2, kNic);
  CHECK(tree.counts().leaves == 3);  // 2 nodes of 2 NICs a leaf; the third leaf is half empty
  CHECK(tree.leaf_of(0, 0) == 0);
  CHECK(tree.leaf_of(1, 1) == 0);
  CHECK(tree.leaf_of(2, 0) == 1);
  CHECK(tree.leaf_of(4, 1) == 2);
  const Fabric rails(small(FabricKind::rail_optimised, Routing::spray), 5, 2, kNic);
  CHECK(rails.counts().leaves == 4);  // 4 nodes a unit of 2 leaves; the second unit has one node
  CHECK(rails.leaf_of(0, 1) == 1);
  CHECK(rails.leaf_of(3, 1) == 1);
  CHECK(rails.leaf_of(4, 0) == 2);
  CHECK(rails.leaf_of(4, 1) == 3);
}

TEST_CASE("switches_crossed: 1 on a leaf, 3 in a pod, 5 between pods, 0 to oneself") {
  FabricSpec spec = small(FabricKind::rail_optimised, Routing::spray);
  spec.levels = 3;
  spec.pod_leaves = 4;  // two units of 4 nodes and 2 leaves
  const Fabric fabric(spec, 17, 2, kNic);
  CHECK(fabric.counts().pods == 3);  // the third pod holds one node
  CHECK(fabric.switches_crossed(0, 0, 0, 0) == 0);
  CHECK(fabric.switches_crossed(0, 0, 3, 0) == 1);
  CHECK(fabric.switches_crossed(0, 0, 0, 1) == 3);
  CHECK(fabric.switches_crossed(0, 0, 4, 0) == 3);
  CHECK(fabric.switches_crossed(0, 0, 7, 1) == 3);
  CHECK(fabric.switches_crossed(0, 0, 8, 0) == 5);
  CHECK(fabric.switches_crossed(16, 0, 0, 0) == 5);
  CHECK(fabric.switches_crossed(16, 0, 16, 1) == 3);
}

TEST_CASE("route: sprayed messages cross their bundles once, whatever the queue pair") {
  FabricSpec spec = small(FabricKind::fat_tree, Routing::spray);
  spec.levels = 3;
  spec.pod_leaves = 2;
  const Fabric fabric(spec, 8, 2, kNic);  // leaves of 2 nodes, pods of 4
  CHECK(links_of(fabric, {3, 1, 3, 1}).empty());
  CHECK(links_of(fabric, {0, 0, 1, 1}) == std::vector{fabric.nic_up(0, 0), fabric.nic_down(1, 1)});
  CHECK(links_of(fabric, {0, 0, 2, 0}) == std::vector{fabric.nic_up(0, 0), fabric.leaf_up(0, 0),
                                                      fabric.leaf_down(1, 0),
                                                      fabric.nic_down(2, 0)});
  const std::vector far{fabric.nic_up(0, 0),      fabric.leaf_up(0, 0),
                        fabric.spine_up(0, 0, 0), fabric.spine_down(1, 0, 0),
                        fabric.leaf_down(3, 0),   fabric.nic_down(7, 1)};
  CHECK(links_of(fabric, {0, 0, 7, 1}, 1) == far);
  CHECK(links_of(fabric, {0, 0, 7, 1}, 2) == far);
}

TEST_CASE("route: an ideal fabric is one switch between any two NICs") {
  const Fabric fabric(small(FabricKind::ideal, Routing::ecmp), 1000, 8, kNic);
  CHECK(fabric.link_count() == 16000);
  CHECK(links_of(fabric, {0, 0, 999, 7}) ==
        std::vector{fabric.nic_up(0, 0), fabric.nic_down(999, 7)});
  CHECK(fabric.switches_crossed(0, 0, 999, 7) == 1);
}

TEST_CASE("route: ECMP gives the same path to the same queue pair, and spreads others evenly") {
  FabricSpec spec = quantum2(FabricKind::rail_optimised, 2);
  spec.routing = Routing::ecmp;
  const Fabric fabric(spec, 64, 8, kNic);
  const Fabric again(spec, 64, 8, kNic);
  constexpr int kQueuePairs = 3200;
  std::vector<int> hits(32, 0);
  for (std::uint64_t qp = 0; qp < kQueuePairs; ++qp) {
    const std::vector<FabricLink> links = links_of(fabric, {0, 0, 40, 0}, qp);
    CHECK(links == links_of(again, {0, 0, 40, 0}, qp));
    ++hits.at(links.at(1) - fabric.leaf_up(0, 0));
  }
  // 100 expected on each of 32 uplinks, standard deviation sqrt(100 * 31 / 32) = 9.8; 4.5 of them.
  CHECK(std::ranges::min(hits) > 56);
  CHECK(std::ranges::max(hits) < 144);
}

TEST_CASE("capacity: bundles carry the ports' capacity over the oversubscription, exactly") {
  FabricSpec spec = small(FabricKind::fat_tree, Routing::spray);
  spec.levels = 3;
  spec.pod_leaves = 3;
  spec.leaf_oversubscription = 3;  // 4 ports over 3: two links, each slower than the NIC
  spec.spine_oversubscription = 2;
  const Fabric spray(spec, 40, 1, kNic);
  const double nic = kNic.base_units();
  CHECK(spray.capacity(spray.nic_down(39, 0)) == kNic);
  CHECK(spray.capacity(spray.leaf_up(9, 0)).base_units() == doctest::Approx(nic * 4 / 3));
  CHECK(spray.capacity(spray.leaf_down(0, 0)).base_units() == doctest::Approx(nic * 4 / 3));
  CHECK(spray.capacity(spray.spine_up(3, 0, 0)).base_units() == doctest::Approx(nic * 2));
  spec.routing = Routing::ecmp;
  const Fabric ecmp(spec, 40, 1, kNic);
  const FabricCounts& c = ecmp.counts();
  CHECK(c.leaf_uplinks == 2);
  CHECK(c.leaf_uplinks * ecmp.capacity(ecmp.leaf_up(9, 1)).base_units() ==
        doctest::Approx(nic * 4 / 3));
  CHECK(c.spines * c.spine_uplinks * ecmp.capacity(ecmp.spine_down(3, 0, 0)).base_units() ==
        doctest::Approx(nic * 2));
}

TEST_CASE("capacity: faster switch links mean fewer of them, at the same total") {
  FabricSpec spec = quantum2(FabricKind::fat_tree, 2);
  spec.routing = Routing::ecmp;
  spec.link_bandwidth = gigabits_per_second(1600);
  const Fabric fabric(spec, 16, 8, kNic);
  CHECK(fabric.counts().leaf_uplinks == 8);
  CHECK(fabric.capacity(fabric.leaf_up(0, 7)) == gigabits_per_second(1600));
}

std::vector<Fabric> all_shapes() {
  std::vector<Fabric> fabrics;
  for (const FabricKindInfo& kind : fabric_kinds()) {
    if (kind.always_drawn) continue;
    for (const RoutingInfo& routing : routings()) {
      if (routing.is_static) continue;
      for (const int nodes : {1, 4, 5, 16, 17, 33}) {
        FabricSpec spec = small(kind.kind, routing.routing);
        spec.leaf_oversubscription = 1.5;
        fabrics.emplace_back(spec, nodes, 2, kNic);
        spec.levels = 3;
        spec.switch_ports = 12;
        fabrics.emplace_back(spec, nodes, 2, kNic);
      }
    }
  }
  return fabrics;
}

TEST_CASE("every fabric: link numbers are dense, and each link has a name of its own") {
  for (const Fabric& fabric : all_shapes()) {
    REQUIRE_FALSE(check(fabric.spec(), fabric.nodes(), 2, kNic));
    std::set<std::string> names;
    for (FabricLink link = 0; link < fabric.link_count(); ++link) {
      names.insert(fabric.link_name(link));
      CHECK(fabric.capacity(link) > BytesPerSecond{});
    }
    CHECK(names.size() == fabric.link_count());
  }
}

TEST_CASE("every fabric: a route crosses one link more than switches, and no link twice") {
  for (const Fabric& fabric : all_shapes()) {
    for (int from = 0; from < 2 * fabric.nodes(); ++from) {
      for (int to = 0; to < 2 * fabric.nodes(); ++to) {
        const std::array ports{from / 2, from % 2, to / 2, to % 2};
        const std::vector<FabricLink> links = links_of(fabric, ports, 7);
        const int switches = fabric.switches_crossed(ports[0], ports[1], ports[2], ports[3]);
        CHECK(links.size() == (from == to ? 0U : static_cast<std::size_t>(switches) + 1));
        CHECK(std::set(links.begin(), links.end()).size() == links.size());
        for (const FabricLink link : links) CHECK(link < fabric.link_count());
      }
    }
  }
}

TEST_CASE("link_name: says which switches a link joins") {
  FabricSpec spec = small(FabricKind::fat_tree, Routing::ecmp);
  spec.levels = 3;
  spec.pod_leaves = 2;
  spec.switch_ports = 8;  // 2 spines of 2 links to each of 2 leaves, 4 links up to 2 cores
  const Fabric fabric(spec, 16, 1, kNic);
  REQUIRE(fabric.counts().spines == 2);
  REQUIRE(fabric.counts().cores == 1);
  CHECK(fabric.link_name(fabric.nic_up(3, 0)) == "node 3 nic 0 up");
  CHECK(fabric.link_name(fabric.nic_down(15, 0)) == "node 15 nic 0 down");
  CHECK(fabric.link_name(fabric.leaf_up(2, 1)) == "leaf 2 to spine 2 link 1");
  CHECK(fabric.link_name(fabric.leaf_down(3, 2)) == "spine 3 to leaf 3 link 0");
  CHECK(fabric.link_name(fabric.spine_up(1, 1, 3)) == "spine 3 to core 1 link 3");
  CHECK(fabric.link_name(fabric.spine_down(0, 1, 0)) == "core 1 to spine 1 link 0");
  spec.routing = Routing::spray;
  const Fabric sprayed(spec, 16, 1, kNic);
  CHECK(sprayed.link_name(sprayed.leaf_up(2, 0)) == "leaf 2 to spines");
  CHECK(sprayed.link_name(sprayed.spine_down(1, 0, 0)) == "cores to pod 1");
}

}  // namespace
}  // namespace lockstep
