#include <cmath>
#include <doctest/doctest.h>
#include <limits>
#include <vector>

#include "tests/topologies/nic.hpp"
#include "topologies/fabrics/fabric.hpp"

namespace lockstep {
namespace {

using test::kNic;

FabricProblem problem(const FabricSpec& spec, int nodes, int nics) {
  const std::optional<FabricProblem> found = check(spec, nodes, nics, kNic);
  REQUIRE(found);
  return *found;
}

TEST_CASE("check: two levels of 64 ports join 64 leaves and not one more") {
  FabricSpec spec;
  spec.kind = FabricKind::fat_tree;
  spec.switch_ports = 64;
  CHECK_FALSE(check(spec, 256, 8, kNic));
  const FabricProblem found = problem(spec, 257, 8);
  CHECK(found.field == "levels");
  CHECK(found.found == "2");
  CHECK(found.allowed ==
        "3, or switch_ports of at least 65: 257 nodes have 65 leaf switches, and a spine of 64 "
        "ports cannot reach them all");
  spec.levels = 3;
  CHECK_FALSE(check(spec, 257, 8, kNic));
}

TEST_CASE("check: three levels of 64 ports join 64 pods and not one more") {
  FabricSpec spec;
  spec.kind = FabricKind::rail_optimised;
  spec.levels = 3;
  spec.switch_ports = 64;
  CHECK_FALSE(check(spec, 64 * 128, 8, kNic));  // 65,536 GPUs, the largest k^3 / 4 of k = 64
  CHECK(problem(spec, 64 * 128 + 1, 8).field == "switch_ports");
  spec.switch_ports = 0;
  CHECK_FALSE(check(spec, 64 * 128 + 1, 8, kNic));
}

TEST_CASE("check: a pod has no more leaves than a spine has ports beside its uplinks") {
  FabricSpec spec;
  spec.kind = FabricKind::fat_tree;
  spec.levels = 3;
  spec.switch_ports = 64;
  spec.pod_leaves = 32;
  CHECK_FALSE(check(spec, 1000, 8, kNic));
  spec.pod_leaves = 33;
  CHECK(problem(spec, 1000, 8).field == "pod_leaves");
  spec.spine_oversubscription = 2;  // 33 ports down, 17 up
  CHECK_FALSE(check(spec, 1000, 8, kNic));
}

TEST_CASE("check: nodes fit leaves, and units fit pods") {
  FabricSpec spec;
  spec.kind = FabricKind::fat_tree;
  spec.leaf_ports_down = 7;
  CHECK(problem(spec, 4, 8).field == "leaf_ports_down");
  spec.leaf_ports_down = 8;
  CHECK_FALSE(check(spec, 4, 8, kNic));
  spec.kind = FabricKind::rail_optimised;
  spec.leaf_ports_down = 1;
  CHECK_FALSE(check(spec, 4, 8, kNic));
  spec.levels = 3;
  spec.pod_leaves = 12;
  CHECK(problem(spec, 4, 8).field == "pod_leaves");
  spec.pod_leaves = 16;
  CHECK_FALSE(check(spec, 4, 8, kNic));
}

TEST_CASE("check: names the member that holds an impossible number") {
  const FabricSpec good;
  CHECK(problem(good, 0, 8).field == "nodes");
  CHECK(problem(good, 4, 0).field == "nodes");
  CHECK(problem(good, std::numeric_limits<int>::max(), 8).field == "nodes");
  CHECK(check(good, 4, 8, BytesPerSecond{})->field == "nic_bandwidth");
  CHECK(check(good, 4, 8, BytesPerSecond{std::nan("")})->field == "nic_bandwidth");
  FabricSpec spec = good;
  spec.levels = 4;
  CHECK(problem(spec, 4, 8).field == "levels");
  spec = good;
  spec.leaf_ports_down = 0;
  CHECK(problem(spec, 4, 8).field == "leaf_ports_down");
  spec = good;
  spec.pod_leaves = -1;
  CHECK(problem(spec, 4, 8).field == "pod_leaves");
  spec = good;
  spec.switch_ports = -1;
  CHECK(problem(spec, 4, 8).field == "switch_ports");
  spec = good;
  spec.link_bandwidth = BytesPerSecond{-1};
  CHECK(problem(spec, 4, 8).field == "link_bandwidth");
  spec = good;
  spec.switch_latency = Seconds{std::nan("")};
  CHECK(problem(spec, 4, 8).field == "switch_latency");
  for (const double absurd : {0.0, -1.0, 1e300, std::nan("")}) {
    CAPTURE(absurd);
    spec = good;
    spec.leaf_oversubscription = absurd;
    CHECK(problem(spec, 4, 8).field == "leaf_oversubscription");
    spec = good;
    spec.spine_oversubscription = absurd;
    CHECK(problem(spec, 4, 8).field == "spine_oversubscription");
  }
}

TEST_CASE("check: whatever it accepts can be built, with links that fit their numbers") {
  constexpr std::array kNumbers{1, 2, 7, 64, 65536};
  for (const FabricKindInfo& kind : fabric_kinds()) {
    if (kind.always_drawn) continue;  // drawn_fabric_test.cpp
    for (const int levels : {2, 3}) {
      for (const int down : kNumbers) {
        for (const int nodes : {1, 8, 1000, 200'000'000}) {
          for (const double over : {0.001, 1.0, 1000.0}) {
            FabricSpec spec;
            spec.kind = kind.kind;
            spec.routing = Routing::ecmp;
            spec.levels = levels;
            spec.leaf_ports_down = down;
            spec.leaf_oversubscription = over;
            spec.spine_oversubscription = over;
            if (check(spec, nodes, 1, kNic)) continue;
            const Fabric fabric(spec, nodes, 1, kNic);
            CHECK(fabric.link_count() >= 2U * static_cast<unsigned>(nodes));
            CHECK_FALSE(fabric.link_name(fabric.link_count() - 1).empty());
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace lockstep
