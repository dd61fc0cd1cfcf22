#include "sim/fabric/group_uses.hpp"

#include <array>
#include <doctest/doctest.h>
#include <string_view>
#include <vector>

#include "tests/support/near.hpp"

namespace lockstep {
namespace {

constexpr int kGroupNodes = 8, kGroupNics = 4;

struct NamedCollective {
  CollectiveOp op;
  std::string_view algorithm;
};
constexpr std::array kGroupCollectives{NamedCollective{CollectiveOp::all_reduce, "ring"},
                                       NamedCollective{CollectiveOp::all_reduce, "tree"},
                                       NamedCollective{CollectiveOp::all_reduce, "hierarchical"},
                                       NamedCollective{CollectiveOp::all_reduce, "collnet_direct"},
                                       NamedCollective{CollectiveOp::all_reduce, "collnet_chain"},
                                       NamedCollective{CollectiveOp::all_gather, "pat"},
                                       NamedCollective{CollectiveOp::all_to_all, "pairwise"},
                                       NamedCollective{CollectiveOp::all_to_all, "two_level"}};

/// Two nodes a leaf; with PXN a rail a leaf.
Fabric group_fabric(Routing routing, bool pxn) {
  FabricSpec spec;
  spec.kind = pxn ? FabricKind::rail_optimised : FabricKind::fat_tree;
  spec.routing = routing;
  spec.levels = 2;
  spec.leaf_ports_down = pxn ? 4 : 8;
  spec.leaf_oversubscription = 2;
  spec.pxn = pxn;
  return {spec, kGroupNodes, kGroupNics, BytesPerSecond{50e9}};
}

std::vector<FabricMember> all_members(int nodes = kGroupNodes) {
  std::vector<FabricMember> members;
  for (int node = 0; node < nodes; ++node) {
    for (int gpu = 0; gpu < kGroupNics; ++gpu) {
      members.push_back({.place = {node, gpu}, .node = node, .nic = gpu});
    }
  }
  return members;
}

std::vector<double> by_link(const Fabric& fabric, const std::vector<RouteHop>& uses) {
  std::vector<double> load(fabric.link_count());
  for (const RouteHop& use : uses) load[use.link] += use.share;
  return load;
}

}  // namespace

TEST_CASE("group uses: what senders put on links between switches adds up to what the group does") {
  constexpr double kBytes = 0.7;
  for (const bool pxn : {false, true}) {
    for (const Routing routing : {Routing::spray, Routing::ecmp}) {
      const Fabric fabric = group_fabric(routing, pxn);
      const std::vector<FabricMember> members = all_members();
      std::vector<std::size_t> node_of;
      for (const FabricMember& m : members) node_of.push_back(static_cast<std::size_t>(m.node));
      for (const NamedCollective& each : kGroupCollectives) {
        CAPTURE(pxn);
        CAPTURE(each.algorithm);
        const GroupCollective collective{each.op, each.algorithm, 2};
        GroupUses groups(fabric);
        std::vector<RouteHop> whole;
        groups.add(collective, members, whole);
        std::vector<std::vector<RouteHop>> parts(kGroupNodes);
        groups.add_by_sender(collective, members, kBytes, node_of, parts);
        std::vector<RouteHop> sum;
        for (const std::vector<RouteHop>& part : parts) {
          sum.insert(sum.end(), part.begin(), part.end());
        }
        const std::vector<double> expected = by_link(fabric, whole), found = by_link(fabric, sum);
        double between = 0;
        for (FabricLink link = 0; link < fabric.link_count(); ++link) {
          INFO(fabric.link_name(link));
          if (fabric.joins_nic(link)) {
            CHECK(found[link] == 0);
            CHECK(expected[link] == test::near(1));
          } else {
            CHECK(found[link] == test::near(kBytes * expected[link]).epsilon(1e-9));
            between += found[link];
          }
        }
        CHECK(between > 0);
      }
    }
  }
}

TEST_CASE("group uses: a stream that switches sum belongs to all whose bytes are in it") {
  const Fabric fabric = group_fabric(Routing::spray, false);
  const std::vector<FabricMember> members = all_members();
  std::vector<std::size_t> node_of;
  for (const FabricMember& m : members) node_of.push_back(static_cast<std::size_t>(m.node));
  std::vector<std::vector<RouteHop>> parts(kGroupNodes);
  GroupUses groups(fabric);
  groups.add_by_sender({CollectiveOp::all_reduce, "collnet_direct", 1}, members, 1, node_of, parts);
  // Two nodes of four NICs each are below a leaf: four streams of a byte go up and four come down,
  // half of each node's.
  for (const std::vector<RouteHop>& part : parts) {
    double bytes = 0;
    for (const RouteHop& hop : part) bytes += hop.share;
    CHECK(bytes == test::near(2 * kGroupNics / 2.0));
  }
}

TEST_CASE("group uses: of a group nothing is left for the next one") {
  const Fabric fabric = group_fabric(Routing::ecmp, false);
  GroupUses several(fabric);
  for (const int nodes : {8, 3, 5}) {
    for (const NamedCollective& each : kGroupCollectives) {
      const GroupCollective collective{each.op, each.algorithm, 1};
      std::vector<RouteHop> one_by_one, alone;
      several.add(collective, all_members(nodes), one_by_one);
      GroupUses(fabric).add(collective, all_members(nodes), alone);
      REQUIRE(one_by_one.size() == alone.size());
      for (std::size_t i = 0; i < alone.size(); ++i) {
        CHECK(one_by_one[i].link == alone[i].link);
        CHECK(one_by_one[i].share == alone[i].share);
      }
    }
  }
}

TEST_CASE("group uses: a group in one NVLink domain puts nothing on links") {
  const Fabric fabric = group_fabric(Routing::spray, false);
  std::vector<RouteHop> uses;
  GroupUses(fabric).add({CollectiveOp::all_to_all, "pairwise"}, all_members(1), uses);
  CHECK(uses.empty());
}

TEST_CASE("group uses: members that send to all have as many connections as they are given") {
  const Fabric fabric = group_fabric(Routing::ecmp, false);
  const std::vector<FabricMember> members = all_members();
  GroupUses groups(fabric);
  for (const int peers : {1, 2, 4}) {
    CAPTURE(peers);
    std::vector<RouteHop> uses;
    groups.add({CollectiveOp::all_to_all, "pairwise", peers}, members, uses);
    CollectiveLoad load(fabric);
    load.add(collective_shape(CollectiveOp::all_to_all, "pairwise", places_of(members), 1, peers),
             members, kFirstHashSeed);
    const double sent = load.by_link()[fabric.nic_up(0, 0)];
    const std::vector<double> found = by_link(fabric, uses);
    for (FabricLink link = 0; link < fabric.link_count(); ++link) {
      CHECK(found[link] == test::near(load.by_link()[link] / sent).epsilon(1e-9));
    }
  }
}

}  // namespace lockstep
