#include "sim/fabric/summed_streams.hpp"

#include <doctest/doctest.h>
#include <map>
#include <string>
#include <vector>

#include "sim/fabric/faulty_fabric.hpp"

namespace lockstep {
namespace {

constexpr int kSumRails = 4;
const BytesPerSecond kSumNic{50e9};

/// Leaves of two nodes; in three levels pods of two leaves.
Fabric sum_tree(int nodes, int levels, const std::vector<FabricFault>& faults = {}) {
  FabricSpec spec;
  spec.kind = FabricKind::fat_tree;
  spec.routing = Routing::ecmp;
  spec.levels = levels;
  spec.leaf_ports_down = 2 * kSumRails;
  spec.pod_leaves = levels == 3 ? 2 : 0;
  spec.faults = faults;
  return {spec, nodes, kSumRails, kSumNic};
}

std::vector<FabricMember> on_all_rails(int nodes) {
  std::vector<FabricMember> members;
  for (int node = 0; node < nodes; ++node) {
    for (int rail = 0; rail < kSumRails; ++rail) {
      members.push_back({.place = {node, rail}, .node = node, .nic = rail});
    }
  }
  return members;
}

/// Every member sends a quarter of its buffer to its rail's switch, and gets the sum back.
std::vector<NetworkEdge> sums_of(const std::vector<FabricMember>& members) {
  std::vector<NetworkEdge> edges;
  for (int m = 0; m < static_cast<int>(members.size()); ++m) {
    edges.push_back({.from = m, .to = kSwitch, .bytes = 0.25});
    edges.push_back({.from = kSwitch, .to = m, .bytes = 0.25});
  }
  return edges;
}

/// Bytes and how many members' are in them, by link.
std::map<std::string, std::pair<double, std::size_t>> streams_on(const Fabric& fabric, int nodes) {
  std::map<std::string, std::pair<double, std::size_t>> out;
  const std::vector<FabricMember> members = on_all_rails(nodes);
  for (const SummedStream& stream : summed_streams(fabric, sums_of(members), members)) {
    auto& [bytes, of] = out[fabric.link_name(stream.link)];
    bytes += stream.bytes;
    of += stream.members.size();
  }
  return out;
}

FabricFault dead_cable(const char* from, const char* to) {
  FabricFault fault;
  fault.from = from;
  fault.to = to;
  return fault;
}
FabricFault dead_switch(const char* which) {
  FabricFault fault;
  fault.part = FabricFault::Part::box;
  fault.from = which;
  return fault;
}

}  // namespace

TEST_CASE("sums in switches: a tree drawn cable by cable carries what a whole tree carries") {
  for (const int levels : {2, 3}) {
    CAPTURE(levels);
    const auto whole = streams_on(sum_tree(8, levels), 8);
    const auto drawn = streams_on(sum_tree(8, levels, {no_fault()}), 8);
    // Below the cores on the same cables; each rail's core may be another one of its spine's.
    CHECK(drawn.size() == whole.size());
    for (const auto& [link, stream] : drawn) {
      CAPTURE(link);
      if (link.find("core") == std::string::npos) CHECK(whole.contains(link));
    }
    // Four rails leave each of four leaves, up and down; and each of two pods where there are any.
    CHECK(whole.size() == (levels == 3 ? 4 * 4 * 2 + 2 * 4 * 2 : 4 * 4 * 2));
    for (const auto& streams : {whole, drawn}) {
      for (const auto& [link, stream] : streams) {
        CAPTURE(link);
        CHECK(stream.first == 0.25);
        CHECK(stream.second == (link.find("core") == std::string::npos ? 2 : 4));
      }
    }
  }
}

TEST_CASE("sums in switches: a rail on one leaf goes no further") {
  CHECK(streams_on(sum_tree(2, 2), 2).empty());
  FabricSpec rails;
  rails.kind = FabricKind::rail_optimised;
  rails.leaf_ports_down = 4;
  CHECK(streams_on({rails, 4, kSumRails, kSumNic}, 4).empty());
  CHECK(streams_on({rails, 8, kSumRails, kSumNic}, 8).size() == 2 * kSumRails * 2);
}

TEST_CASE("sums in switches: a dead uplink moves its rail's tree to another root, for all leaves") {
  const auto whole = streams_on(sum_tree(8, 2, {no_fault()}), 8);
  const auto moved = streams_on(sum_tree(8, 2, {dead_cable("leaf 1", "spine 2")}), 8);
  CHECK(moved.size() == whole.size());
  // Rails 0 and 1 stay; rail 2 takes spine 3, and rail 3 the next one.
  for (const char* const leaf : {"leaf 0", "leaf 1", "leaf 2", "leaf 3"}) {
    CAPTURE(leaf);
    const auto uses = [&](const char* spine) {
      return moved.contains(std::string(leaf) + " to " + spine);
    };
    CHECK(uses("spine 0"));
    CHECK(uses("spine 1"));
    CHECK_FALSE(uses("spine 2"));
    CHECK(uses("spine 3"));
    CHECK(uses("spine 4"));
  }
  CHECK(streams_on(sum_tree(8, 2, {dead_switch("spine 2")}), 8) == moved);
}

TEST_CASE("sums in switches: above pods too, and slow cables are not avoided") {
  FabricFault slow = dead_cable("leaf 1", "spine 2");
  slow.rate = 0.5;
  CHECK(streams_on(sum_tree(8, 3, {slow}), 8) == streams_on(sum_tree(8, 3, {no_fault()}), 8));
  const Fabric broken = sum_tree(8, 3, {dead_cable("leaf 1", "spine 2")});
  const auto moved = streams_on(broken, 8);
  CHECK(moved.size() == 4 * 4 * 2 + 2 * 4 * 2);
  CHECK_FALSE(moved.contains("leaf 0 to spine 2"));  // nor any other leaf of its pod
  CHECK(has_sum_trees(broken, 8));
}

TEST_CASE("sums in switches: where no switch is above all leaves of a rail, there is no tree") {
  std::vector<FabricFault> faults;
  const std::vector<std::string> leaves{"leaf 0", "leaf 1", "leaf 2", "leaf 3"};
  for (int spine = 0; spine < 8; ++spine) {
    const std::string name = "spine " + std::to_string(spine);
    faults.push_back(dead_cable(leaves[static_cast<std::size_t>(spine) % 4].c_str(), name.c_str()));
    const Fabric fabric = sum_tree(8, 2, faults);
    CAPTURE(spine);
    CHECK(has_sum_trees(fabric, 8) == (spine < 7));
    // Two leaves share spines that only others have lost.
    CHECK(has_sum_trees(fabric, 4));
  }
}

}  // namespace lockstep
