// Permutations over whole fabrics, solved by max-min: what comes out must be what theory says.

#include <array>
#include <cmath>
#include <cstdint>
#include <doctest/doctest.h>
#include <set>
#include <vector>

#include "tests/topologies/nic.hpp"
#include "tests/topologies/permutations.hpp"
#include "topologies/fabrics/fabric.hpp"

namespace lockstep {
namespace {

using test::kNic;

FabricSpec tree_of(FabricKind kind, Routing routing, int levels) {
  FabricSpec spec;
  spec.kind = kind;
  spec.routing = routing;
  spec.levels = levels;
  return spec;
}

TEST_CASE("a non-blocking sprayed tree carries any permutation at line rate") {
  for (const FabricKindInfo& kind : fabric_kinds()) {
    if (kind.always_drawn) continue;
    for (const int levels : {2, 3}) {
      const Fabric fabric(tree_of(kind.kind, Routing::spray, levels), 250, 8, kNic);
      for (const std::uint64_t seed : {1U, 2U, 3U}) {
        for (const double rate : rates(fabric, random_permutation(2000, seed), seed)) {
          CHECK(rate == doctest::Approx(1.0));
        }
      }
    }
  }
}

TEST_CASE("o:1 at the leaf divides the rates by o when all cross the spines, and only then") {
  for (const double over : {1.0, 2.0, 3.0, 7.0}) {
    FabricSpec spec = tree_of(FabricKind::fat_tree, Routing::spray, 2);
    spec.leaf_oversubscription = over;
    const Fabric fabric(spec, 64, 8, kNic);  // leaves of 32 NICs
    for (const double rate : rates(fabric, shift_permutation(512, 32), 0)) {
      CHECK(rate == doctest::Approx(1 / over));
    }
    // Neighbouring nodes swap: nothing leaves its leaf.
    std::vector<int> swap = shift_permutation(512, 0);
    for (int i = 0; i < 512; ++i) swap[static_cast<std::size_t>(i)] = i ^ 8;
    for (const double rate : rates(fabric, swap, 0)) CHECK(rate == doctest::Approx(1.0));
  }
}

TEST_CASE("rails: traffic that keeps to its rail and unit needs no spine, other traffic does") {
  FabricSpec spec = tree_of(FabricKind::rail_optimised, Routing::spray, 2);
  spec.leaf_oversubscription = 4;
  const Fabric fabric(spec, 64, 8, kNic);  // two units of 32 nodes
  for (int nodes_away : {1, 5, 31}) {
    std::vector<int> within(512);
    for (int i = 0; i < 512; ++i) {
      const int node = i / 8;
      within[static_cast<std::size_t>(i)] = (node / 32 * 32 + (node + nodes_away) % 32) * 8 + i % 8;
    }
    for (const double rate : rates(fabric, within, 0)) CHECK(rate == doctest::Approx(1.0));
  }
  for (const double rate : rates(fabric, shift_permutation(512, 32 * 8), 0)) {
    CHECK(rate == doctest::Approx(0.25));
  }
  for (const double rate : rates(fabric, shift_permutation(512, 1), 0)) {
    CHECK(rate == doctest::Approx(0.25));
  }
}

TEST_CASE("o:1 at leaf and spine multiply when all cross the cores") {
  FabricSpec spec = tree_of(FabricKind::fat_tree, Routing::spray, 3);
  spec.leaf_oversubscription = 2;
  spec.spine_oversubscription = 3.5;
  spec.pod_leaves = 4;
  const Fabric fabric(spec, 64, 8, kNic);  // pods of 128 NICs
  for (const double rate : rates(fabric, shift_permutation(512, 128), 0)) {
    CHECK(rate == doctest::Approx(1 / 7.0));
  }
}

// All 32 NICs of each leaf send to the next leaf, so that flows that share an uplink also share the
// downlink: a leaf's throughput is the share of uplinks that are hit at all. 32 balls in 32 bins
// hit 1 - (31/32)^32 = 0.638 of them on average; one leaf deviates by sqrt(0.0972 / 32) = 0.055
// (variance of empty bins per bin, e^-1 - 2 e^-2), the mean over 64 leaves by 0.0069.
constexpr double kBusyUplinks = 0.638;
constexpr double kFourDeviations = 4 * 0.0069;

TEST_CASE("ECMP: a permutation loses what balls in bins say, on two levels") {
  const Fabric fabric(tree_of(FabricKind::fat_tree, Routing::ecmp, 2), 256, 8, kNic);
  const std::vector<int> next_leaf = shift_permutation(2048, 32);
  const double carried = mean(rates(fabric, next_leaf, 1));
  CHECK(std::abs(carried - kBusyUplinks) < kFourDeviations);
  CHECK(mean(rates(fabric, next_leaf, 1)) == carried);
  CHECK(mean(rates(fabric, next_leaf, 2)) != carried);
}

TEST_CASE("ECMP: a random permutation also collides on the way down, and across cores even more") {
  const std::vector<int> permutation = random_permutation(2048, 5);
  const double two = mean(
      rates(Fabric(tree_of(FabricKind::fat_tree, Routing::ecmp, 2), 256, 8, kNic), permutation, 1));
  const double three = mean(
      rates(Fabric(tree_of(FabricKind::fat_tree, Routing::ecmp, 3), 256, 8, kNic), permutation, 1));
  FabricSpec pods = tree_of(FabricKind::fat_tree, Routing::ecmp, 3);
  pods.pod_leaves = 4;
  const double crossing = mean(rates(Fabric(pods, 256, 8, kNic), permutation, 1));
  CHECK(two < kBusyUplinks - kFourDeviations);
  CHECK(three < two);
  CHECK(crossing < two);
  CHECK(crossing > 0.3);
}

TEST_CASE("ECMP: switches hash independently, so that one layer does not polarise the next") {
  // Flows of a leaf that chose the same spine must still spread over all of that spine's uplinks.
  FabricSpec spec = tree_of(FabricKind::fat_tree, Routing::ecmp, 3);
  spec.pod_leaves = 32;
  const Fabric fabric(spec, 512, 8, kNic);  // 4 pods, 32 spines of 32 uplinks each
  std::vector<RouteHop> hops;
  std::set<FabricLink> used;
  for (std::uint64_t qp = 0; qp < 4000; ++qp) {
    hops.clear();
    fabric.route(0, 0, 511, 0, qp, hops);
    if (hops.at(1).link == fabric.leaf_up(0, 3)) used.insert(hops.at(2).link);
  }
  // About 125 flows over 32 uplinks: 32 (31/32)^125 = 0.6 of them missed on average.
  CHECK(used.size() >= 28);
}

}  // namespace
}  // namespace lockstep
