// Flows over fat trees, and flows that share nothing.
#include <array>
#include <benchmark/benchmark.h>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "sim/core/engine.hpp"
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

/// Moves a message over every flow of the network, all at once.
class OneMessageEach final : public Process {
 public:
  OneMessageEach(FlowNetwork& network, std::vector<Bytes> amounts)
      : network_(network), amounts_(std::move(amounts)), left_(amounts_.size()) {}

  void begin(StepTime now) override {
    for (FlowIndex flow = 0; flow < amounts_.size(); ++flow) {
      network_.start(flow, amounts_[flow], now);
    }
  }
  [[nodiscard]] StepTime next_event() const override { return kNever; }
  void flows_ended(std::span<const FlowIndex> flows, StepTime /*now*/) override {
    left_ -= flows.size();
  }
  void handle_events(StepTime /*now*/) override {}
  [[nodiscard]] bool done() const override { return left_ == 0; }

 private:
  FlowNetwork& network_;
  std::vector<Bytes> amounts_;
  std::size_t left_;
};

/// Every host sends one message; from the first start to the last end. Building is not counted.
void permutation(benchmark::State& state, bool mixed) {
  const int hosts = static_cast<int>(state.range(0));
  StepTime end;
  while (state.KeepRunning()) {
    state.PauseTiming();
    RandomStream random({.seed = 1});
    FlowNetwork network = fat_tree(hosts);
    add_permutation(network, hosts, random);
    std::vector<Bytes> amounts;
    for (FlowIndex flow = 0; flow < network.flows(); ++flow) {
      amounts.push_back((mixed ? 16 + 96 * random.uniform() : 64.0) * kMebibyte);
    }
    OneMessageEach messages(network, std::move(amounts));
    Engine engine(network);
    engine.add(messages);
    state.ResumeTiming();
    end = engine.run();
  }
  state.SetItemsProcessed(state.iterations() * hosts);
  state.counters["last_end_s"] = to_seconds(end).base_units();
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

/// Every host sends a message of another size to every other: each end changes the rates of
/// hundreds.
void all_to_all_mixed(benchmark::State& state) {
  const int hosts = static_cast<int>(state.range(0));
  StepTime end;
  while (state.KeepRunning()) {
    state.PauseTiming();
    RandomStream random({.seed = 1});
    FlowNetwork network = fat_tree(hosts);
    std::vector<Bytes> amounts;
    for (int from = 0; from < hosts; ++from) {
      for (int to = 0; to < hosts; ++to) {
        if (from == to) continue;
        add_path(network, hosts, from, to, static_cast<int>(random.below(kUp)));
        amounts.push_back((16 + 96 * random.uniform()) * kMebibyte);
      }
    }
    OneMessageEach messages(network, std::move(amounts));
    Engine engine(network);
    engine.add(messages);
    state.ResumeTiming();
    end = engine.run();
  }
  state.SetItemsProcessed(state.iterations() * hosts * (hosts - 1));
  state.counters["last_end_s"] = to_seconds(end).base_units();
}
BENCHMARK(all_to_all_mixed)->Arg(64)->Arg(128)->Unit(benchmark::kMillisecond);

/// Starts flows again as they end, an instant of the engine for each iteration of the benchmark.
class RestartingFlows final : public Process {
 public:
  RestartingFlows(benchmark::State& state, FlowNetwork& network, std::vector<Bytes> amounts)
      : state_(state), network_(network), amounts_(std::move(amounts)) {}

  void begin(StepTime now) override {
    for (FlowIndex flow = 0; flow < amounts_.size(); ++flow) {
      network_.start(flow, amounts_[flow], now);
    }
  }
  [[nodiscard]] StepTime next_event() const override { return kNever; }
  void flows_ended(std::span<const FlowIndex> flows, StepTime now) override {
    for (const FlowIndex flow : flows) network_.start(flow, amounts_[flow], now);
    ended_ += static_cast<std::int64_t>(flows.size());
  }
  void handle_events(StepTime /*now*/) override {}
  [[nodiscard]] bool done() const override { return !state_.KeepRunning(); }

  [[nodiscard]] std::int64_t ended() const { return ended_; }

 private:
  benchmark::State& state_;
  FlowNetwork& network_;
  std::vector<Bytes> amounts_;
  std::int64_t ended_ = 0;
};

/// Flows of three links of their own that start again as they end: starts and ends, an item each
/// pair, while as many flows are under way as the argument says.
void private_links(benchmark::State& state) {
  FlowNetwork network;
  RandomStream random({.seed = 1});
  std::vector<Bytes> amounts;
  for (std::int64_t flow = 0; flow < state.range(0); ++flow) {
    std::array<FlowEdge, 3> edges{};
    for (FlowEdge& edge : edges) edge = {network.add_link(kLine), 1.0};
    network.add_flow(edges);
    amounts.push_back((1 + random.uniform()) * kMebibyte);
  }
  RestartingFlows flows(state, network, std::move(amounts));
  Engine engine(network);
  engine.add(flows);
  engine.run();
  state.SetItemsProcessed(flows.ended());
}
BENCHMARK(private_links)->Arg(16)->Arg(1024)->Arg(32768);

}  // namespace
}  // namespace lockstep
