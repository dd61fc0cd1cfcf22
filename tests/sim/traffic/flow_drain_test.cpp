// Flows that only end, settled by links, against the solver that settles them one by one.
#include "sim/traffic/flow_drain.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <doctest/doctest.h>
#include <optional>
#include <span>
#include <vector>

#include "sim/core/engine.hpp"
#include "sim/core/flow_network.hpp"
#include "sim/core/random.hpp"
#include "tests/sim/core/test_seed.hpp"

namespace lockstep {

namespace {

struct DrainedCase {
  std::vector<BytesPerSecond> capacities;
  std::vector<std::vector<FlowEdge>> flows;
  std::vector<Bytes> amounts;
};

/// Sends one message over each flow.
class DrainedMessages final : public Process {
 public:
  DrainedMessages(FlowNetwork& network, const std::vector<Bytes>& amounts)
      : network_(network), amounts_(amounts) {}

  void begin(StepTime now) override {
    for (FlowIndex flow = 0; flow < amounts_.size(); ++flow) {
      network_.start(flow, amounts_[flow], now);
    }
  }
  [[nodiscard]] StepTime next_event() const override { return kNever; }
  void flows_ended(std::span<const FlowIndex> flows, StepTime now) override {
    for (const FlowIndex flow : flows) ends.push_back({now, flow});
  }
  void handle_events(StepTime /*now*/) override {}
  [[nodiscard]] bool done() const override { return ends.size() == amounts_.size(); }

  std::vector<FlowEnd> ends;

 private:
  FlowNetwork& network_;
  const std::vector<Bytes>& amounts_;
};

FlowNetwork network_of(const DrainedCase& of) {
  FlowNetwork network;
  for (const BytesPerSecond capacity : of.capacities) network.add_link(capacity);
  for (const std::vector<FlowEdge>& edges : of.flows) network.add_flow(edges);
  return network;
}

constexpr StepTime kStart{1234};

/// Ends by FlowNetwork.
std::vector<FlowEnd> ends_by_flows(const DrainedCase& of) {
  FlowNetwork network = network_of(of);
  DrainedMessages messages(network, of.amounts);
  Engine engine(network);
  engine.add(messages);
  engine.run(kStart);
  return messages.ends;
}

std::optional<std::vector<FlowEnd>> ends_by_links(const DrainedCase& of,
                                                  std::size_t most_times = FlowDrain::kMostTimes) {
  std::vector<DrainedFlow> messages;
  for (FlowIndex flow = 0; flow < of.amounts.size(); ++flow) {
    messages.push_back({flow, of.amounts[flow]});
  }
  return drain_flows(network_of(of), messages, kStart, most_times);
}

/// Each flow ends in both, within two ticks; those of one tick in the order of flows.
void require_alike(const DrainedCase& of) {
  const auto by_links = ends_by_links(of);
  REQUIRE(by_links.has_value());
  REQUIRE(std::ranges::is_sorted(*by_links));
  std::vector<FlowEnd> one = ends_by_flows(of), other = *by_links;
  REQUIRE(one.size() == other.size());
  std::ranges::sort(one, {}, &FlowEnd::flow);
  std::ranges::sort(other, {}, &FlowEnd::flow);
  for (std::size_t f = 0; f < one.size(); ++f) {
    CAPTURE(f);
    REQUIRE(one[f].flow == other[f].flow);
    const auto [least, most] = std::minmax(one[f].at, other[f].at);
    REQUIRE((most - least).ps <= 2);
  }
}

/// Up to 200 flows over up to 8 of up to 24 links; often many tie, in capacities and in sizes.
DrainedCase random_drained(RandomStream& random) {
  DrainedCase out;
  const std::uint32_t links = 8 + random.below(17), flows = 2 + random.below(200);
  const bool equal = random.below(2) == 0, few_sizes = random.below(2) == 0;
  for (std::uint32_t l = 0; l < links; ++l) {
    out.capacities.emplace_back(equal ? 50e9 : 1e9 * (1 + random.below(60)));
  }
  for (std::uint32_t f = 0; f < flows; ++f) {
    std::vector<LinkIndex> own;
    for (std::uint32_t uses = 1 + random.below(8); uses > 0; --uses) {
      const LinkIndex link = random.below(links);
      if (std::ranges::find(own, link) == own.end()) own.push_back(link);
    }
    std::vector<FlowEdge>& edges = out.flows.emplace_back();
    for (const LinkIndex link : own) edges.push_back({link, 1.0});
    out.amounts.emplace_back(few_sizes ? 1e6 * (1 + random.below(4))
                                       : 1e6 * (1 + 100 * random.uniform()));
  }
  return out;
}

/// Every host sends a message of another size to every other, over a way up and a way down.
DrainedCase mixed_all_to_all(RandomStream& random, LinkIndex hosts) {
  DrainedCase out;
  out.capacities.assign(2 * hosts, BytesPerSecond{50e9});
  for (LinkIndex from = 0; from < hosts; ++from) {
    for (LinkIndex to = 0; to < hosts; ++to) {
      if (from == to) continue;
      out.flows.push_back({{from, 1.0}, {hosts + to, 1.0}});
      out.amounts.emplace_back(5e8 * (1 + random.uniform()));
    }
  }
  return out;
}

}  // namespace

TEST_CASE("FlowDrain: random messages end as the solver of flows has them, within two ticks") {
  const std::uint64_t seed = test::test_seed();
  CAPTURE(seed);
  for (std::uint32_t trial = 0; trial < 400; ++trial) {
    CAPTURE(trial);
    RandomStream random({.seed = seed, .trajectory = trial});
    require_alike(random_drained(random));
  }
}

TEST_CASE("FlowDrain: an all-to-all of mixed sizes ends as the solver of flows has it") {
  RandomStream random({.seed = 5, .trajectory = 1});
  require_alike(mixed_all_to_all(random, 48));  // more ends than between two adding-ups
}

TEST_CASE("FlowDrain: of equal messages those end together that tie") {
  DrainedCase of;
  of.capacities.assign(4, BytesPerSecond{10e9});
  for (const LinkIndex to : {2U, 3U, 2U, 3U}) {
    of.flows.push_back({{of.flows.size() < 2 ? 0U : 1U, 1.0}, {to, 1.0}});
    of.amounts.emplace_back(5e9);
  }
  const StepTime end = kStart + StepTime{1'000'000'000'000};
  CHECK(ends_by_links(of) == std::vector<FlowEnd>{{end, 0}, {end, 1}, {end, 2}, {end, 3}});
}

TEST_CASE("FlowDrain: nothing where links may not be settled until they rest") {
  RandomStream random({.seed = 5, .trajectory = 2});
  CHECK_FALSE(ends_by_links(mixed_all_to_all(random, 8), 0).has_value());
}

TEST_CASE("FlowDrain: takes only flows that carry their bytes once, over few links") {
  DrainedCase of;
  of.capacities.assign(9, BytesPerSecond{1e9});
  of.amounts.emplace_back(1e9);
  of.flows = {{{0, 1.0}, {1, 1.0}}};
  const StepTime end = kStart + StepTime{1'000'000'000'000};
  CHECK(ends_by_links(of) == std::vector<FlowEnd>{{end, 0}});
  of.flows = {{{0, 1.0}, {1, 0.5}}};
  CHECK_FALSE(ends_by_links(of).has_value());
  of.flows.front().clear();
  for (LinkIndex l = 0; l < 9; ++l) of.flows.front().push_back({l, 1.0});
  CHECK_FALSE(ends_by_links(of).has_value());
  of.flows = {{{0, 1.0}}};
  FlowNetwork network = network_of(of);
  network.set_weight(0, 2, {});
  const DrainedFlow message{0, of.amounts.front()};
  CHECK_FALSE(drain_flows(network, std::span(&message, 1), kStart).has_value());
}

}  // namespace lockstep
