#include "models/collectives/in_node.hpp"

#include <cmath>
#include <doctest/doctest.h>
#include <vector>

#include "tests/support/near.hpp"

namespace lockstep {
namespace {

IntraNodeCollectives two_regimes() {
  IntraNodeCollectives presets;
  presets.all_reduce = {
      {"simple_ring", microseconds(20), microseconds(1), gigabytes_per_second(350), 2},
      {"nvls", microseconds(90), Seconds{}, gigabytes_per_second(480), 5}};
  presets.all_gather = {
      {"low_latency", microseconds(5), microseconds(1), gigabytes_per_second(100), 2}};
  return presets;
}

std::vector<CollectiveCandidate> candidates(CollectiveOp op, int ranks) {
  std::vector<CollectiveCandidate> out;
  add_in_node_candidates(op, ranks, two_regimes(), out);
  return out;
}

// Eight ranks, 14 steps of 1 us: 20 + 14 = 34 us; 1.75 bytes per payload byte at 350 GB/s.
TEST_CASE("add_in_node_candidates: a ring all-reduce of eight ranks, by hand") {
  const std::vector<CollectiveCandidate> found = candidates(CollectiveOp::all_reduce, 8);
  REQUIRE(found.size() == 2);
  CHECK(found[0].algorithm == "ring");
  CHECK(found[0].protocol == "simple");
  CHECK(found[0].latency.base_units() == test::near(34e-6));
  CHECK(found[0].per_byte.base_units() == test::near(1.75 / 350e9));
  CHECK(found[0].nvlink_coefficient == 1.75);
  CHECK(found[0].network_coefficient == 0);
}

TEST_CASE("add_in_node_candidates: the switch reduces from five ranks on, (n+1)/n bytes each") {
  CHECK(candidates(CollectiveOp::all_reduce, 4).size() == 1);
  const std::vector<CollectiveCandidate> found = candidates(CollectiveOp::all_reduce, 5);
  REQUIRE(found.size() == 2);
  CHECK(found[1].algorithm == "nvls");
  CHECK(found[1].nvlink_coefficient == test::near(6.0 / 5));
}

TEST_CASE("add_in_node_candidates: a broadcast takes the all-gather's ring and the whole payload") {
  const std::vector<CollectiveCandidate> found = candidates(CollectiveOp::broadcast, 8);
  REQUIRE(found.size() == 1);
  CHECK(found[0].protocol == "ll128");
  CHECK(found[0].latency.base_units() == test::near(12e-6));
  CHECK(found[0].per_byte.base_units() == test::near(1 / 100e9));
}

TEST_CASE("ring_bus_bandwidth: rings without NVLS, two equal ones blend as regimes do") {
  CHECK(ring_bus_bandwidth(two_regimes()).base_units() == test::near(350e9));
  IntraNodeCollectives twins = two_regimes();
  twins.all_reduce.push_back(twins.all_reduce.front());
  CHECK(ring_bus_bandwidth(twins).base_units() == test::near(350e9 * std::pow(2, 1.0 / 8)));
  // However slow a ring is, the switch is none.
  IntraNodeCollectives slow = two_regimes();
  for (CollectiveRegime& regime : slow.all_reduce) {
    if (regime.name != "nvls") regime.bus_bandwidth = gigabytes_per_second(0.5);
  }
  CHECK(ring_bus_bandwidth(slow).base_units() == test::near(0.5e9));
}

}  // namespace
}  // namespace lockstep
