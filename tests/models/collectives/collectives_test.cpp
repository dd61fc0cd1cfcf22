#include "models/collectives/collectives.hpp"

#include <array>
#include <doctest/doctest.h>
#include <string>
#include <string_view>

#include "tests/support/near.hpp"
#include "tests/support/presets.hpp"

namespace lockstep {
namespace {

struct System {
  std::string_view gpu;
  std::string_view transport;
  double nic_gb_per_s;
};
// Generations that choose differently: rings only, trees, wide domains, no switch.
constexpr std::array kSystems{
    System{"a100_sxm4_80gb", "infiniband", 25},
    System{"h100_sxm5_80gb", "roce", 50},
    System{"b200_sxm_180gb", "efa_v4", 50},
    System{"gb200_186gb", "infiniband", 50},
    System{"mi300x", "roce", 50},
    System{"v100_sxm2_32gb", "ethernet", 3},
};
struct Shape {
  int ranks, per_node;
};
constexpr std::array kShapes{Shape{2, 2},    Shape{4, 4},   Shape{8, 8},  Shape{2, 1},
                             Shape{16, 8},   Shape{24, 8},  Shape{64, 8}, Shape{128, 1},
                             Shape{1024, 4}, Shape{2048, 8}};

using test::presets;

CollectiveCost cost_on(const System& system, const CollectiveCall& call) {
  return collective_cost(call, presets().gpu(system.gpu), presets().transport(system.transport),
                         gigabytes_per_second(system.nic_gb_per_s));
}
double time_on(const System& system, const CollectiveCall& call) {
  return collective_time(call, presets().gpu(system.gpu), presets().transport(system.transport),
                         gigabytes_per_second(system.nic_gb_per_s))
      .base_units();
}

/// Calls `check` for every collective on every system in every shape.
template <class Check>
void for_all(Check check) {
  for (const CollectiveKind& kind : collective_kinds()) {
    CAPTURE(std::string(kind.name));
    for (const System& system : kSystems) {
      CAPTURE(std::string(system.gpu));
      for (const auto& [ranks, per_node] : kShapes) {
        CAPTURE(ranks);
        CAPTURE(per_node);
        check(kind.op, system, ranks, per_node);
      }
    }
  }
}

TEST_CASE("every collective: has a name, a summary and a source, and stands at its own place") {
  for (const CollectiveKind& kind : collective_kinds()) {
    CHECK_FALSE(kind.name.empty());
    CHECK_FALSE(kind.summary.empty());
    CHECK_FALSE(kind.source.empty());
    CHECK(&kind == &collective_kinds()[static_cast<std::size_t>(kind.op)]);
  }
}

TEST_CASE("every collective: time is latency plus payload over rate, and grows with the payload") {
  for_all([](CollectiveOp op, const System& system, int ranks, int per_node) {
    double before = 0;
    for (double bytes = 1; bytes < 1e12; bytes *= 7) {
      CAPTURE(bytes);
      const CollectiveCall call{op, Bytes{bytes}, ranks, per_node};
      const CollectiveCost cost = cost_on(system, call);
      const double time = time_on(system, call);
      CHECK(cost.latency > Seconds{});
      CHECK(time == test::near((cost.latency + call.payload / cost.payload_rate).base_units()));
      CHECK(time > before);
      before = time;
    }
  });
}

// What is left of latencies (up to 0.2 s over 2,048 ranks of slow Ethernet) in the hours of 1e14
// bytes.
TEST_CASE("every collective: twice a huge payload takes twice as long") {
  for_all([](CollectiveOp op, const System& system, int ranks, int per_node) {
    const double once = time_on(system, {op, Bytes{1e14}, ranks, per_node});
    const double twice = time_on(system, {op, Bytes{2e14}, ranks, per_node});
    CHECK(twice / once == test::near(2.0).epsilon(1e-3));
  });
}

TEST_CASE("every collective: what it puts on a NIC fits the NIC, and stays inside a single node") {
  for_all([](CollectiveOp op, const System& system, int ranks, int per_node) {
    for (const double bytes : {1e3, 1e6, 1e8, 1e10}) {
      CAPTURE(bytes);
      const CollectiveCost cost = cost_on(system, {op, Bytes{bytes}, ranks, per_node});
      const BytesPerSecond out = cost.network_coefficient * cost.payload_rate;
      CHECK(out.base_units() <= system.nic_gb_per_s * 1e9 * (1 + 1e-12));
      CHECK((cost.network_coefficient == 0) == (ranks == per_node));
      CHECK(cost.nvlink_coefficient >= 0);
    }
  });
}

TEST_CASE("every collective: more nodes never make it faster, tree over two nodes aside") {
  for_all([](CollectiveOp op, const System& system, int ranks, int per_node) {
    const int nodes = ranks / per_node;
    if (nodes < 4) return;
    for (const double bytes : {8.0, 1e6, 1e9}) {
      CAPTURE(bytes);
      CHECK(time_on(system, {op, Bytes{bytes}, 2 * ranks, per_node}) >=
            time_on(system, {op, Bytes{bytes}, ranks, per_node}));
    }
  });
}

// Ranks on the same algorithm: up to four in a node, where no switch reduces yet.
TEST_CASE("every collective: four ranks in a node are no faster than two for a small payload") {
  for (const CollectiveKind& kind : collective_kinds()) {
    CAPTURE(std::string(kind.name));
    for (const System& system : kSystems) {
      CHECK(time_on(system, {kind.op, Bytes{1024}, 4, 4}) >=
            time_on(system, {kind.op, Bytes{1024}, 2, 2}) * (1 - 1e-12));
    }
  }
}

constexpr System kA100{"a100_sxm4_80gb", "infiniband", 25};
constexpr System kH100{"h100_sxm5_80gb", "infiniband", 50};
constexpr Bytes kHuge{1e11};

// n = 32 ranks, g = 8 in each of k = 4 nodes. A ring's byte leaves each member 2(n-1)/n times, over
// NVLink for 7 of 8 members, over the NIC for one: per rail 2 (31/32) / 8.
TEST_CASE("coefficients: ring all-reduce, all-gather and reduce-scatter over four nodes of eight") {
  const CollectiveCost reduce = cost_on(kA100, {CollectiveOp::all_reduce, kHuge, 32, 8});
  CHECK(reduce.algorithm == "ring");
  CHECK(reduce.network_coefficient == test::near(2.0 * 31 / 32 / 8));
  CHECK(reduce.nvlink_coefficient == test::near(2.0 * 31 / 32 * 7 / 8));
  for (const CollectiveOp op : {CollectiveOp::all_gather, CollectiveOp::reduce_scatter}) {
    const CollectiveCost half = cost_on(kA100, {op, kHuge, 32, 8});
    CHECK(half.network_coefficient == test::near(31.0 / 32 / 8));
    CHECK(half.nvlink_coefficient == test::near(31.0 / 32 * 7 / 8));
  }
}

// A tree over two nodes: each node sends the payload once, spread over eight rails; inside, the
// switch reduces and multicasts (g+1)/g.
TEST_CASE("coefficients: an all-reduce over two H100 nodes is a tree that crosses once") {
  const CollectiveCost cost = cost_on(kH100, {CollectiveOp::all_reduce, kHuge, 16, 8});
  CHECK(cost.algorithm == "nvls_tree");
  CHECK(cost.network_coefficient == test::near(1.0 / 8));
  CHECK(cost.nvlink_coefficient == test::near(9.0 / 8));
  const CollectiveCost four = cost_on(kH100, {CollectiveOp::all_reduce, kHuge, 32, 8});
  CHECK(four.network_coefficient == test::near(2.0 * 3 / 4 / 8));
}

// n = 16, g = 8: half of what a rank sends leaves the node; 7/16 goes to its neighbours, and 7/8 of
// the off-node half first crosses NVLink to the right rail.
TEST_CASE("coefficients: an all-to-all over two nodes sends half of it off the node") {
  const CollectiveCost cost = cost_on(kH100, {CollectiveOp::all_to_all, kHuge, 16, 8});
  CHECK(cost.network_coefficient == test::near(0.5));
  CHECK(cost.nvlink_coefficient == test::near(7.0 / 16 + 0.5 * 7 / 8));
}

TEST_CASE("coefficients: a ring with one member per node puts nothing on NVLink") {
  const CollectiveCost cost = cost_on(kH100, {CollectiveOp::all_reduce, kHuge, 128, 1});
  CHECK(cost.algorithm == "ring");
  CHECK(cost.network_coefficient == test::near(2.0 * 127 / 128));
  CHECK(cost.nvlink_coefficient == 0);
}

TEST_CASE("coefficients: eight H100 reduce in the switch, four in a ring") {
  const CollectiveCost eight = cost_on(kH100, {CollectiveOp::all_reduce, kHuge, 8, 8});
  CHECK(eight.algorithm == "nvls");
  CHECK(eight.nvlink_coefficient == test::near(9.0 / 8));
  const CollectiveCost four = cost_on(kH100, {CollectiveOp::all_reduce, kHuge, 4, 4});
  CHECK(four.algorithm == "ring");
  CHECK(four.nvlink_coefficient == test::near(1.5));
}

TEST_CASE("protocols: a small all-reduce across nodes takes LL on a tree, a large one Simple") {
  const CollectiveCost small = cost_on(kH100, {CollectiveOp::all_reduce, Bytes{1024}, 128, 8});
  CHECK(small.algorithm == "tree");
  CHECK(small.protocol == "ll");
  CHECK(cost_on(kH100, {CollectiveOp::all_reduce, kHuge, 128, 8}).protocol == "simple");
}

}  // namespace
}  // namespace lockstep
