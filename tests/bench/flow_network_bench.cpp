// Flows over fat trees, and flows that share nothing.
#include <array>
#include <benchmark/benchmark.h>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "sim/core/flow_network.hpp"
#include "sim/core/random.hpp"

namespace lockstep {
namespace {

constexpr BytesPerSecond kLine = gigabits_per_second(400);
constexpr Bytes kMebibyte{1048576.0};
constexpr int kDown = 16;  // hosts of a leaf
constexpr int kUp = 8;     // spines, one link from each leaf: oversubscribed 2 : 1

/// Host up and down links, then a link up and down between each leaf and each spine.
FlowNetwork fat_tree(int hosts) {
  FlowNetwork network;
  const int leaves = hosts / kDown;
  for (int link = 0; link < 2 * hosts + 2 * leaves * kUp; ++link) network.add_link(kLine);
  return network;
}
FlowIndex add_path(FlowNetwork& network, int hosts, int from, int to, int spine) {
  const int leaf_links = hosts / kDown * kUp;
  const auto link = [](int index) { return static_cast<LinkIndex>(index); };
  std::vector<FlowEdge> edges{{link(from), 1.0}};
  if (from / kDown != to / kDown) {
    edges.push_back({link(2 * hosts + from / kDown * kUp + spine), 1.0});
    edges.push_back({link(2 * hosts + leaf_links + to / kDown * kUp + spine), 1.0});
  }
  edges.push_back({link(hosts + to), 1.0});
  return network.add_flow(edges);
}

/// A random permutation; each flow on a random spine.
void add_permutation(FlowNetwork& network, int hosts, RandomStream& random) {
  std::vector<int> to(static_cast<std::size_t>(hosts));
  std::iota(to.begin(), to.end(), 0);
  for (std::size_t i = to.size() - 1; i > 0; --i) {
    std::swap(to[i], to[random.below(static_cast<std::uint32_t>(i + 1))]);
  }
  for (int host = 0; host < hosts; ++host) {
    const int spine = static_cast<int>(random.below(kUp));
    add_path(network, hosts, host, to[static_cast<std::size_t>(host)], spine);
  }
}

/// Every host sends one message; from the first start to the last end. Building is not counted.
void permutation(benchmark::State& state, bool mixed) {
  const int hosts = static_cast<int>(state.range(0));
  std::vector<FlowIndex> ended;
  StepTime now;
  while (state.KeepRunning()) {
    state.PauseTiming();
    RandomStream random({.seed = 1});
    FlowNetwork network = fat_tree(hosts);
    add_permutation(network, hosts, random);
    now = {};
    state.ResumeTiming();
    for (FlowIndex flow = 0; flow < network.flows(); ++flow) {
      const Bytes amount = (mixed ? 16 + 96 * random.uniform() : 64.0) * kMebibyte;
      network.start(flow, amount, now);
    }
    for (network.settle(now); !network.idle(); network.settle(now)) {
      now = network.next_end();
      ended.clear();
      network.collect_ended(now, ended);
    }
  }
  state.SetItemsProcessed(state.iterations() * hosts);
  state.counters["last_end_s"] = to_seconds(now).base_units();
}

BENCHMARK_CAPTURE(permutation, equal, false)
    ->Arg(1024)
    ->Arg(8192)
    ->Arg(32768)
    ->Arg(131072)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(permutation, mixed, true)
    ->Arg(1024)
    ->Arg(8192)
    ->Arg(32768)
    ->Arg(131072)
    ->Unit(benchmark::kMillisecond);

/// Flows of three links of their own that start again as they end: starts and ends, an item each
/// pair, while as many flows are under way as the argument says.
void private_links(benchmark::State& state) {
  FlowNetwork network;
  RandomStream random({.seed = 1});
  const auto flows = static_cast<FlowIndex>(state.range(0));
  std::vector<Bytes> amounts;
  amounts.reserve(flows);
  for (FlowIndex flow = 0; flow < flows; ++flow) {
    std::array<FlowEdge, 3> edges{};
    for (FlowEdge& edge : edges) edge = {network.add_link(kLine), 1.0};
    network.add_flow(edges);
    amounts.push_back((1 + random.uniform()) * kMebibyte);
    network.start(flow, amounts.back(), {});
  }
  network.settle({});
  std::vector<FlowIndex> ended;
  std::int64_t pairs = 0;
  while (state.KeepRunning()) {
    const StepTime now = network.next_end();
    ended.clear();
    network.collect_ended(now, ended);
    for (const FlowIndex flow : ended) network.start(flow, amounts[flow], now);
    network.settle(now);
    pairs += static_cast<std::int64_t>(ended.size());
  }
  state.SetItemsProcessed(pairs);
}
BENCHMARK(private_links)->Arg(16)->Arg(1024)->Arg(32768);

}  // namespace
}  // namespace lockstep
