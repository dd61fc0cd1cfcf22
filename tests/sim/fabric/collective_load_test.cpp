#include "sim/fabric/collective_load.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <numeric>
#include <vector>

#include "sim/core/random.hpp"
#include "sim/fabric/connections.hpp"
#include "tests/sim/core/test_seed.hpp"

namespace lockstep {
namespace {

constexpr int kNics = 4;
const BytesPerSecond kNicRate{50e9};

FabricSpec tree(Routing routing, double oversubscription, int levels = 2) {
  FabricSpec spec;
  spec.kind = FabricKind::fat_tree;
  spec.routing = routing;
  spec.levels = levels;
  spec.leaf_ports_down = 8;  // two nodes of a leaf
  spec.pod_leaves = levels == 3 ? 2 : 0;
  spec.leaf_oversubscription = oversubscription;
  return spec;
}

/// All GPUs of so many nodes, or each with the probability `share`; `sharing` of them on each NIC.
std::vector<FabricMember> members_on(int nodes, double share = 1, RandomStream* random = nullptr,
                                     int sharing = 1) {
  std::vector<FabricMember> members;
  for (int node = 0; node < nodes; ++node) {
    for (int gpu = 0; gpu < kNics * sharing; ++gpu) {
      if (random != nullptr && random->uniform() >= share) continue;
      members.push_back(
          {.place = {node, gpu}, .node = node, .nic = gpu / sharing, .turn = gpu % sharing});
    }
  }
  return members;
}

CollectiveShape shape_of(CollectiveOp op, std::string_view algorithm,
                         const std::vector<FabricMember>& members) {
  return collective_shape(op, algorithm, places_of(members), 2 * kNics, 2);
}

/// The same edge by edge, over the routes of single messages.
std::vector<double> routed_one_by_one(const Fabric& fabric, const CollectiveShape& shape,
                                      const std::vector<FabricMember>& members) {
  std::vector<double> load(fabric.link_count());
  std::vector<RouteHop> hops;
  for (const NetworkEdge& edge : written_edges(shape, places_of(members))) {
    const FabricMember &from = members[static_cast<std::size_t>(edge.from)],
                       &to = members[static_cast<std::size_t>(edge.to)];
    hops.clear();
    route_connections(fabric, {from.node, from.nic}, {to.node, to.nic},
                      queue_pair_of_turns(kFirstHashSeed, from.turn, to.turn), edge.channels, hops);
    for (const RouteHop& hop : hops) load[hop.link] += edge.bytes * hop.share;
  }
  return load;
}

}  // namespace

TEST_CASE("collective load: all-to-all over an oversubscribed leaf takes what the uplinks carry") {
  // 8 nodes of 4 GPUs, two nodes a leaf: of the 32 parts of a payload 24 leave the leaf. A leaf has
  // 8 members and uplinks of 8 / 4 NICs, so the uplinks take 8 * 24/32 / (2 NICs) a byte.
  const Fabric fabric(tree(Routing::spray, 4), 8, kNics, kNicRate);
  const std::vector<FabricMember> members = members_on(8);
  for (const std::string_view algorithm : {"pairwise", "two_level"}) {
    CollectiveLoad load(fabric);
    load.add(shape_of(CollectiveOp::all_to_all, algorithm, members), members);
    CHECK(load.slowest(0.9).per_byte.base_units() ==
          doctest::Approx(8 * 24.0 / 32 / (2 * 0.9 * 50e9)).epsilon(1e-12));
  }
}

TEST_CASE("collective load: a ring leaves every leaf once on each rail") {
  const Fabric fabric(tree(Routing::spray, 4), 8, kNics, kNicRate);
  const std::vector<FabricMember> members = members_on(8);
  CollectiveLoad load(fabric);
  load.add(shape_of(CollectiveOp::all_reduce, "ring", members), members);
  // 2 (n - 1) / n of the payload in all, over uplinks that carry as much as two NICs.
  CHECK(load.slowest(1).per_byte.base_units() ==
        doctest::Approx(2.0 * 31 / 32 / (2 * 50e9)).epsilon(1e-12));
}

TEST_CASE("collective load: switches that sum pass one stream of each rail on") {
  const Fabric fabric(tree(Routing::spray, 4), 8, kNics, kNicRate);
  const std::vector<FabricMember> members = members_on(8);
  CollectiveLoad load(fabric);
  load.add(shape_of(CollectiveOp::all_reduce, "collnet_direct", members), members);
  // A quarter of the payload on each of four rails, where two nodes of the leaf sent it: half of
  // what they sent.
  CHECK(load.slowest(1).per_byte.base_units() == doctest::Approx(1.0 / (2 * 50e9)).epsilon(1e-12));
  CHECK(load.by_link()[fabric.nic_up(3, 2)] == doctest::Approx(0.25));
}

TEST_CASE("collective load: within a leaf no link between switches carries anything") {
  const Fabric fabric(tree(Routing::spray, 4), 8, kNics, kNicRate);
  const std::vector<FabricMember> members = members_on(2);
  for (const std::string_view algorithm : {"ring", "tree", "collnet_direct"}) {
    CollectiveLoad load(fabric);
    load.add(shape_of(CollectiveOp::all_reduce, algorithm, members), members);
    CHECK(load.slowest(1).per_byte == SecondsPerByte{});
  }
}

TEST_CASE("collective load: of NIC links only those slower than a port count, by the law's bytes") {
  FabricSpec spec = tree(Routing::spray, 1);
  FabricFault fault;
  fault.part = FabricFault::Part::nic;
  fault.from = "node 1 nic 2";
  fault.rate = 0.2;
  spec.faults = {fault};
  const Fabric fabric(spec, 2, kNics, kNicRate);
  const std::vector<FabricMember> members = members_on(2);
  CollectiveLoad load(fabric);
  CHECK(load.slowest_nic(members, 0.5, kNicRate, 0.9).per_byte == SecondsPerByte{});  // unused
  load.add(shape_of(CollectiveOp::all_to_all, "pairwise", members), members);
  const CollectiveLoad::Slowest slow = load.slowest_nic(members, 0.5, kNicRate, 0.9);
  CHECK(slow.per_byte.base_units() == doctest::Approx(0.5 / (0.9 * 10e9)).epsilon(1e-12));
  CHECK(fabric.link_name(slow.link) == "node 1 nic 2 up");
  // A law for ports as slow as that one has it already.
  CHECK(load.slowest_nic(members, 0.5, BytesPerSecond{10e9}, 0.9).per_byte == SecondsPerByte{});
}

TEST_CASE("collective load: counts of members give what routing every message gives") {
  constexpr int kTries = 100;
  const std::uint64_t seed = test::test_seed();
  CAPTURE(seed);
  RandomStream random({.seed = seed, .purpose = 0x6c6f6164});
  for (int i = 0; i < kTries; ++i) {
    CAPTURE(i);
    const int levels = random.below(2) == 0 ? 2 : 3;
    FabricSpec spec =
        tree(random.below(3) == 0 ? Routing::ecmp : Routing::spray, 1 + random.below(3), levels);
    if (random.below(2) == 0) spec.kind = FabricKind::rail_optimised;
    if (random.below(4) == 0) spec.pxn = true;
    if (check(spec, 12, kNics, kNicRate)) continue;
    const Fabric fabric(spec, 12, kNics, kNicRate);
    const double share = random.below(2) == 0 ? 1 : 0.6;
    const int sharing = random.below(2) == 0 ? 1 : 3;
    const std::vector<FabricMember> members = members_on(12, share, &random, sharing);
    if (members.size() < 2) continue;
    const auto algorithm = random.below(2) == 0 ? "pairwise" : "two_level";
    const CollectiveShape shape = shape_of(CollectiveOp::all_to_all, algorithm, members);
    CollectiveLoad load(fabric);
    load.add(shape, members, kFirstHashSeed);
    const std::vector<double> expected = routed_one_by_one(fabric, shape, members);
    for (FabricLink link = 0; link < fabric.link_count(); ++link) {
      INFO(fabric.link_name(link), " of ", algorithm);
      CHECK(load.by_link()[link] == doctest::Approx(expected[link]).epsilon(1e-9));
    }
  }
}

TEST_CASE("collective load: what enters the fabric is what the shape sends") {
  const Fabric fabric(tree(Routing::ecmp, 2), 12, kNics, kNicRate);
  const std::vector<FabricMember> members = members_on(12);
  for (const std::string_view algorithm : {"ring", "tree", "nvls_tree", "hierarchical"}) {
    CAPTURE(algorithm);
    const CollectiveShape shape = shape_of(CollectiveOp::all_reduce, algorithm, members);
    CollectiveLoad load(fabric);
    load.add(shape, members);
    double sent = 0, up = 0, down = 0;
    for (const NetworkEdge& edge : shape.edges) sent += edge.bytes;
    for (int node = 0; node < 12; ++node) {
      for (int nic = 0; nic < kNics; ++nic) {
        up += load.by_link()[fabric.nic_up(node, nic)];
        down += load.by_link()[fabric.nic_down(node, nic)];
      }
    }
    CHECK(up == doctest::Approx(sent).epsilon(1e-12));
    CHECK(down == doctest::Approx(sent).epsilon(1e-12));
  }
}

}  // namespace lockstep
