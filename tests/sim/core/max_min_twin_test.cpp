// The solver against its former self, which is slower: every bit is the same.
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <doctest/doctest.h>
#include <vector>

#include "sim/core/max_min.hpp"
#include "sim/core/random.hpp"
#include "tests/sim/core/random_network.hpp"
#include "tests/sim/core/test_seed.hpp"
#include "tests/support/former_max_min.hpp"

namespace lockstep {

namespace {

struct Twins {
  MaxMin solver;
  test::FormerMaxMin former;

  LinkIndex add_link(BytesPerSecond capacity) {
    former.add_link(capacity);
    return solver.add_link(capacity);
  }
  FlowIndex add_flow(const std::vector<FlowEdge>& edges) {
    former.add_flow(edges);
    return solver.add_flow(edges);
  }
  void start(FlowIndex flow) {
    solver.start(flow);
    former.start(flow);
  }
  void stop(FlowIndex flow) {
    solver.stop(flow);
    former.stop(flow);
  }
  void set_weight(FlowIndex flow, double weight) {
    solver.set_weight(flow, weight);
    former.set_weight(flow, weight);
  }
  void set_capacity(LinkIndex link, BytesPerSecond capacity) {
    solver.set_capacity(link, capacity);
    former.set_capacity(link, capacity);
  }
  [[nodiscard]] bool runs(FlowIndex flow) const { return solver.rate(flow) > BytesPerSecond{}; }

  /// Solves both. Rates, what changed in which order, and who holds whom are the same.
  void require_same() {
    const std::vector<FlowIndex>& changed = solver.solve();
    REQUIRE(changed == former.solve());
    const auto same = [](BytesPerSecond ours, BytesPerSecond other) {
      return std::bit_cast<std::uint64_t>(ours.base_units()) ==
             std::bit_cast<std::uint64_t>(other.base_units());
    };
    std::size_t others = 0;
    for (const FlowIndex flow : changed) {
      others += same(solver.previous_rate(flow), former.previous_rate(flow)) ? 0 : 1;
    }
    for (FlowIndex flow = 0; flow < solver.flows(); ++flow) {
      others += same(solver.rate(flow), former.rate(flow)) ? 0 : 1;
      others += solver.bottleneck(flow) == former.bottleneck(flow) ? 0 : 1;
    }
    REQUIRE(others == 0);
  }
};

/// Some flows stop, start, or both at once with another weight; now and then a link is resized.
void change_twins(RandomStream& random, Twins& twins) {
  const auto flows = static_cast<std::uint32_t>(twins.solver.flows());
  std::vector<FlowIndex> chosen;
  for (std::uint32_t i = 1 + random.below(4); i > 0; --i) chosen.push_back(random.below(flows));
  std::ranges::sort(chosen);
  chosen.erase(std::ranges::unique(chosen).begin(), chosen.end());
  for (const FlowIndex flow : chosen) {
    const bool ran = twins.runs(flow);
    if (ran) twins.stop(flow);
    if (random.below(4) == 0) twins.set_weight(flow, 0.25 + 2 * random.uniform());
    if (!ran || random.below(8) == 0) twins.start(flow);
  }
  if (random.below(4) != 0) return;
  const LinkIndex link = random.below(static_cast<std::uint32_t>(twins.solver.links()));
  const double factor = random.below(2) == 0 ? 0.3 + random.uniform() : 1.5;
  twins.set_capacity(link, factor * twins.solver.capacity(link));
}

/// Every host sends to every other over its way up, a spine drawn at random and a way down.
void add_all_to_all(RandomStream& random, Twins& twins, LinkIndex hosts, LinkIndex spines) {
  for (LinkIndex l = 0; l < 2 * hosts + 2 * spines; ++l) {
    twins.add_link(BytesPerSecond{l < 2 * hosts ? 50e9 : 400e9});
  }
  for (LinkIndex from = 0; from < hosts; ++from) {
    for (LinkIndex to = 0; to < hosts; ++to) {
      if (from == to) continue;
      const LinkIndex spine = 2 * hosts + random.below(spines);
      twins.add_flow({{from, 1}, {spine, 1}, {spine + spines, 1}, {hosts + to, 1}});
    }
  }
}

}  // namespace

TEST_CASE("MaxMin: every bit is that of the former solver, over random networks and changes") {
  const std::uint64_t seed = test::test_seed();
  CAPTURE(seed);
  for (std::uint32_t trial = 0; trial < 60; ++trial) {
    CAPTURE(trial);
    RandomStream random({.seed = seed, .trajectory = trial});
    Twins twins;
    test::random_network(random, twins);
    for (int step = 0; step < 60; ++step) {
      CAPTURE(step);
      change_twins(random, twins);
      twins.require_same();
    }
  }
}

TEST_CASE("MaxMin: all-to-all whose flows end one by one has the bits of the former solver") {
  const std::uint64_t seed = test::test_seed();
  CAPTURE(seed);
  RandomStream random({.seed = seed, .trajectory = 0});
  Twins twins;
  add_all_to_all(random, twins, 24, 3);
  std::vector<FlowIndex> running;
  for (FlowIndex flow = 0; flow < twins.solver.flows(); ++flow) {
    twins.start(flow);
    running.push_back(flow);
  }
  twins.require_same();
  while (running.size() > 100) {
    const std::uint32_t at = random.below(static_cast<std::uint32_t>(running.size()));
    twins.stop(running[at]);
    running[at] = running.back();
    running.pop_back();
    twins.require_same();
  }
}

}  // namespace lockstep
