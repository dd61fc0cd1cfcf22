// Sets of nodes, exact GPU time, and where jobs are placed.
#include "sim/cluster/free_gpus.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <set>
#include <vector>

#include "sim/cluster/gpu_time.hpp"
#include "sim/cluster/node_set.hpp"
#include "sim/cluster/time_bins.hpp"
#include "sim/core/random.hpp"
#include "tests/sim/cluster/sample_queues.hpp"

namespace lockstep {
namespace {

std::vector<int> nodes_of(const Holding& holding) {
  std::vector<int> out;
  for (const HeldGpus& held : holding) out.push_back(held.node);
  return out;
}

/// A cluster on which each node has so many GPUs free.
FreeGpus free_on(const std::vector<int>& free, int gpus_per_node) {
  FreeGpus out(static_cast<int>(free.size()), gpus_per_node);
  for (std::size_t node = 0; node < free.size(); ++node) {
    const int taken = gpus_per_node - free[node];
    if (taken > 0) out.take(std::vector{HeldGpus{static_cast<int>(node), taken}});
  }
  return out;
}

std::vector<int> placed(const FreeGpus& free, int gpus, const QueuePlacement& rules) {
  const auto where = Placer(rules, free.nodes(), free.gpus_per_node()).place(free, gpus);
  return where ? nodes_of(*where) : std::vector<int>{};
}

std::vector<QueueJob> jobs_of(const std::vector<int>& gpus) {
  std::vector<QueueJob> out;
  for (const int of : gpus) {
    QueueJob job;
    job.gpus = of;
    out.push_back(job);
  }
  return out;
}

}  // namespace

TEST_CASE("placement: fragmentation gradient descent spares what the jobs can use") {
  const std::vector<QueueJob> jobs = jobs_of({2, 4});
  CHECK(useless_gpus(jobs, 8) == std::vector<double>{0, 1, 1, 1.5, 0, 0, 0, 0, 0});
  CHECK(useless_gpus(jobs_of({64}), 4) == std::vector<double>{0, 1, 2, 3, 0});  // of whole nodes
  const Placer placer({.within_node = WithinNode::fgd}, 3, 8, jobs);
  const auto node = [&](int gpus, const std::vector<int>& free) {
    return placer.place(free_on(free, 8), gpus).value().front().node;
  };
  CHECK(node(1, {4, 6, 8}) == 1);  // the first would keep 3, of which a job of 4 has no use
  CHECK(node(2, {4, 3, 6}) == 1);  // of its 3 free GPUs a job of 4 had no use, of 1 neither has
  CHECK(node(1, {8, 6, 5}) == 2);  // equals: the fullest
  CHECK_FALSE(placer.place(free_on({1, 0, 1}, 8), 2).has_value());
}

TEST_CASE("placement: blocks of blocks, the smallest that has room") {
  const QueuePlacement rules{.across = AcrossNodes::block, .block_nodes = 2};
  const FreeGpus free = free_on({2, 0, 2, 2, 2, 2, 2, 2}, 2);  // idle: 1, 2, 2 and 2
  CHECK(placed(free, 4, rules) == std::vector{2, 3});
  CHECK(placed(free, 6, rules) == std::vector{2, 3, 0});     // 3 of the first four, not of 4
  CHECK(placed(free, 8, rules) == std::vector{4, 5, 6, 7});  // all of the last four
  CHECK(placed(free, 10, rules) == std::vector{2, 3, 4, 5, 0});
  CHECK(placed(free, 14, rules).size() == 7);
  CHECK(placed(free, 16, rules).empty());
}

TEST_CASE("placement: least contended, the busiest link below which a job lies carries least") {
  const QueuePlacement rules{.across = AcrossNodes::least_contended, .leaf_nodes = 2};
  const FreeGpus free = free_on({2, 2, 0, 2, 2, 2, 2, 2}, 2);  // idle: 2, 1, 2 and 2
  const Placer placer(rules, 8, 2);
  const auto under = [&](int gpus, const LinkLoads& loads) {
    return nodes_of(placer.place(free, gpus, nullptr, &loads).value());
  };
  LinkLoads loads{.unit_nodes = 2, .units = {0, 0, 0, 0}, .pods = {}, .pod_of_unit = {0, 0, 0, 0}};
  CHECK(under(6, loads) == std::vector{0, 1, 3});  // equals: as packed
  CHECK(placed(free, 6, {.across = AcrossNodes::packed, .leaf_nodes = 2}) == under(6, loads));
  loads.units = {0.5, 0.2, 0, 0.1};
  CHECK(under(4, loads) == std::vector{0, 1});  // below one leaf nothing meets anybody
  CHECK(under(6, loads) == std::vector{4, 5, 6});
  loads.units = {0.1, 0.2, 0.3, 0};
  CHECK(under(6, loads) == std::vector{0, 1, 6});
  CHECK(under(8, loads) == std::vector{0, 1, 6, 7});
  CHECK(under(10, loads) == std::vector{0, 1, 6, 7, 3});  // up to 0.2

  // Two pods of two leaves: across them the links of pods count, too.
  loads.units = {0.4, 0, 0.3, 0.3};
  loads.pods = {0, 0};
  loads.pod_of_unit = {0, 0, 1, 1};
  CHECK(under(6, loads) == std::vector{4, 5, 6});  // across them 0.3, too; within one is as good
  loads.units = {0.4, 0, 0.6, 0};
  CHECK(under(6, loads) == std::vector{6, 7, 3});  // within one 0.4 and 0.6, across nothing
  loads.pods = {0.9, 0};
  loads.units = {0.8, 0, 0.8, 0.1};
  CHECK(under(6, loads) == std::vector{0, 1, 3});  // 0.9 across
}

TEST_CASE("placement: least contended is never busier than packed, on drawn loads") {
  RandomStream random({.seed = 11});
  for (int round = 0; round < 200; ++round) {
    CAPTURE(round);
    std::vector<int> idle;
    for (int node = 0; node < 32; ++node) idle.push_back(random.below(3) > 0 ? 1 : 0);
    const FreeGpus free = free_on(idle, 1);
    LinkLoads loads{.unit_nodes = 4, .units = {}, .pods = {}, .pod_of_unit = {}};
    for (int leaf = 0; leaf < 8; ++leaf) {
      loads.units.push_back(static_cast<double>(random.below(4)) * 0.25);
      loads.pod_of_unit.push_back(0);
    }
    const int gpus = 2 + static_cast<int>(random.below(12));
    const auto busiest = [&](AcrossNodes across) {
      const Placer placer({.across = across, .leaf_nodes = 4}, 32, 1);
      const auto where =
          placer.place(free, gpus, nullptr, across == AcrossNodes::packed ? nullptr : &loads);
      if (!where) return -1.0;
      std::set<int> nodes, leaves;
      for (const HeldGpus& held : *where) {
        REQUIRE(free.on(held.node) == 1);
        nodes.insert(held.node);
        leaves.insert(held.node / 4);
      }
      REQUIRE(nodes.size() == static_cast<std::size_t>(gpus));
      double most = 0;
      for (const int leaf : leaves) {
        most = std::max(most, loads.units[static_cast<std::size_t>(leaf)]);
      }
      return leaves.size() == 1 ? 0.0 : most;
    };
    CHECK(busiest(AcrossNodes::least_contended) <= busiest(AcrossNodes::packed));
  }
}

TEST_CASE("node set: does what a set of numbers does") {
  constexpr int kNodes = 5000;
  NodeSet set(kNodes), other(kNodes);
  std::set<int> expected, expected_other;
  RandomStream random({.seed = 7});
  for (int i = 0; i < 2000; ++i) {
    const int node = static_cast<int>(random.below(kNodes));
    if (random.uniform() < 0.7) {
      set.add(node);
      expected.insert(node);
    } else {
      set.remove(node);
      expected.erase(node);
    }
    const int mark = static_cast<int>(random.below(kNodes));
    other.add(mark);
    expected_other.insert(mark);
  }
  CHECK(set.count() == static_cast<int>(expected.size()));
  std::vector<int> walked, both;
  for (int n = set.first(); n >= 0; n = n + 1 < kNodes ? set.first(n + 1) : -1) walked.push_back(n);
  CHECK(walked == std::vector<int>(expected.begin(), expected.end()));
  for (int n = set.first(0, &other); n >= 0; n = n + 1 < kNodes ? set.first(n + 1, &other) : -1) {
    both.push_back(n);
  }
  NodeSet common = set, all = set, rest = set;
  common &= other;
  all |= other;
  rest -= other;
  CHECK(common.count() == static_cast<int>(both.size()));
  CHECK(all.count() == set.count() + other.count() - common.count());
  CHECK(rest.count() == set.count() - common.count());
  CHECK(common.within(set));
  CHECK(rest.within(set));
  CHECK_FALSE(all.within(set));
  CHECK(set.count_within(other, kNodes) == common.count());
  CHECK(rest.first(0, &other) == -1);
}

TEST_CASE("GPU time: a thousand years of ten million GPUs, to the nanosecond") {
  constexpr RunTime kYear = 31'536'000'000'000'000;
  GpuTime sum;
  for (int year = 0; year < 1000; ++year) sum += GpuTime(9'000'000, kYear / 5 + 1);
  GpuTime parts(9'000'000, kYear / 5 + 1);
  for (int year = 1; year < 1000; ++year) sum -= parts;
  CHECK(sum == parts);
  CHECK(GpuTime(3, 1'500'000'000).gpu_seconds() == 4.5);
  CHECK(GpuTime(2, 1'800'000'000'000).gpu_hours() == 1);
  CHECK(GpuTime(1, 5) - GpuTime(1, 7) < GpuTime());
}

TEST_CASE("placement: less than a node goes to the first, the fullest or the emptiest with room") {
  const FreeGpus free = free_on({8, 3, 0, 5, 3}, 8);
  const auto within = [](WithinNode rule) { return QueuePlacement{.within_node = rule}; };
  CHECK(placed(free, 2, within(WithinNode::first_fit)) == std::vector{0});
  CHECK(placed(free, 2, within(WithinNode::best_fit)) == std::vector{1});
  CHECK(placed(free, 4, within(WithinNode::best_fit)) == std::vector{3});
  CHECK(placed(free, 2, within(WithinNode::worst_fit)) == std::vector{0});
  CHECK(placed(free, 8, within(WithinNode::best_fit)) == std::vector{0});
  CHECK(placed(free, 9, within(WithinNode::best_fit)) == std::vector{0, 1});
  CHECK(placed(free, 16, within(WithinNode::best_fit)).empty());
}

TEST_CASE("placement: whole nodes by leaves as Slurm's topology/tree takes them") {
  // Leaves of four nodes; idle: one, three, four and two of them.
  const FreeGpus free = free_on({0, 8, 0, 0, 8, 8, 0, 8, 8, 8, 8, 8, 8, 0, 8, 0}, 8);
  const QueuePlacement tree{.across = AcrossNodes::packed, .leaf_nodes = 4};
  CHECK(placed(free, 16, tree) == std::vector{12, 14});  // the leaf that just suffices
  CHECK(placed(free, 24, tree) == std::vector{4, 5, 7});
  CHECK(placed(free, 32, tree) == std::vector{8, 9, 10, 11});
  CHECK(placed(free, 40, tree) == std::vector{8, 9, 10, 11, 1});  // the largest, then what suffices
  CHECK(placed(free, 48, tree) == std::vector{8, 9, 10, 11, 12, 14});
  CHECK(placed(free, 8, tree) == std::vector{1});  // one node: the first idle one
  const QueuePlacement spread{.across = AcrossNodes::spread, .leaf_nodes = 4};
  CHECK(placed(free, 32, spread) == std::vector{8, 4, 12, 1});
  CHECK(placed(free, 16, {}) == std::vector{1, 4});
}

TEST_CASE("placement: closed nodes have nothing, and get back what they had") {
  FreeGpus free = free_on({4, 8}, 8);
  free.close(1);
  CHECK(free.total() == 4);
  CHECK(placed(free, 8, {}).empty());
  free.give(std::vector{HeldGpus{0, 4}});
  CHECK(free.total() == 8);
  free.close(0);
  free.open(0);
  free.open(1);
  CHECK(free.total() == 16);
  CHECK(free.idle().count() == 2);
}

TEST_CASE("time bins: the integral stays, however often bins are merged") {
  TimeBins bins;
  double integral = 0, at = 0;
  RandomStream random({.seed = 3});
  for (int i = 0; i < 5000; ++i) {
    const double lasts = 100 * random.exponential(), value = random.below(9);
    at += lasts;
    integral += value * lasts;
    bins.until(test::seconds(at), value);
  }
  const std::vector<double> means = bins.means();
  CHECK(means.size() <= 2 * TimeBins::kBins);
  double sum = 0;
  const double bin_s = to_seconds(bins.bin()).base_units();
  for (std::size_t b = 0; b < means.size(); ++b) {
    sum += means[b] * std::min(bin_s, at - static_cast<double>(b) * bin_s);
  }
  CHECK(sum == doctest::Approx(integral).epsilon(1e-6));
}

}  // namespace lockstep
