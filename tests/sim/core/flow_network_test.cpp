#include "sim/core/flow_network.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <doctest/doctest.h>
#include <limits>
#include <span>
#include <vector>

#include "sim/core/random.hpp"
#include "tests/sim/core/message_process.hpp"
#include "tests/sim/core/random_network.hpp"
#include "tests/sim/core/reference_max_min.hpp"
#include "tests/sim/core/test_seed.hpp"

namespace lockstep {

namespace {

using Plan = std::vector<std::vector<test::Message>>;  ///< of each flow
using Ends = std::vector<std::vector<double>>;         ///< of each flow, in seconds

Plan random_plan(RandomStream& random, std::size_t flows) {
  Plan plan(flows);
  for (std::vector<test::Message>& messages : plan) messages = test::random_messages(random);
  return plan;
}

void check_loads(const FlowNetwork& network) {
  for (LinkIndex link = 0; link < network.links(); ++link) {
    REQUIRE(network.load(link) / network.capacity(link) <= 1 + 1e-11);
  }
}

/// No link carries more than it can, and what has ended is out.
class CheckedMessages final : public test::MessageProcess {
 public:
  using MessageProcess::MessageProcess;

  [[nodiscard]] StepTime next_event() const override {
    check_loads(network());
    return MessageProcess::next_event();
  }
  void flows_ended(std::span<const FlowIndex> flows, StepTime now) override {
    REQUIRE(std::ranges::is_sorted(flows));
    for (const FlowIndex flow : flows) REQUIRE_FALSE(network().active(flow));
    MessageProcess::flows_ended(flows, now);
  }
};

Ends run(FlowNetwork& network, const Plan& plan) {
  CheckedMessages messages(network);
  for (FlowIndex flow = 0; flow < plan.size(); ++flow) messages.add(flow, plan[flow]);
  Engine engine(network);
  engine.add(messages);
  engine.run();
  Ends ends(plan.size());
  for (FlowIndex flow = 0; flow < plan.size(); ++flow) {
    for (const StepTime end : messages.ends(flow)) {
      ends[flow].push_back(to_seconds(end).base_units());
    }
  }
  return ends;
}

/// The same in seconds instead of ticks, all rates and all ends anew at every instant.
Ends run_reference(test::ReferenceNetwork network, const Plan& plan) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  Ends ends(plan.size());
  std::vector<double> starts(plan.size(), kNever);
  std::vector<double> left(plan.size(), 0.0);
  const auto plan_next = [&](std::size_t f, double now) {
    const std::size_t next = ends[f].size();
    starts[f] = next < plan[f].size() ? now + to_seconds(plan[f][next].pause).base_units() : kNever;
  };
  for (std::size_t f = 0; f < plan.size(); ++f) plan_next(f, 0);
  for (double now = 0;;) {
    const std::vector<double> rates = network.rates();
    double next = kNever;
    std::size_t first = plan.size();  // the flow that ends next, unless a start comes before
    for (std::size_t f = 0; f < plan.size(); ++f) {
      const bool active = network.flows[f].active;
      const double at = active ? now + left[f] / rates[f] : starts[f];
      if (at >= next) continue;
      next = at;
      first = f;
    }
    if (first == plan.size()) return ends;
    for (std::size_t f = 0; f < plan.size(); ++f) left[f] -= rates[f] * (next - now);
    now = next;
    bool& active = network.flows[first].active;
    active = !active;
    if (active) {
      left[first] = plan[first][ends[first].size()].amount.base_units();
      starts[first] = kNever;
    } else {
      ends[first].push_back(now);
      plan_next(first, now);
    }
  }
}

/// One link of 1 GB/s, and flows that cross it.
struct OneLink {
  FlowNetwork network;
  LinkIndex link;
  FlowIndex a;
  FlowIndex b;
  OneLink() : link(network.add_link(gigabytes_per_second(1))) {
    const std::vector<FlowEdge> edges{{link, 1.0}};
    a = network.add_flow(edges);
    b = network.add_flow(edges);
  }
  std::vector<FlowIndex> ended_at(StepTime now) {
    std::vector<FlowIndex> ended;
    network.collect_ended(now, ended);
    return ended;
  }
};

/// Writes down everything.
struct Log : FlowObserver {
  struct Span {
    FlowIndex flow;
    double from, to, rate;
    LinkIndex held_by;
  };
  std::vector<Span> spans;
  std::vector<FlowIndex> starts, ends;

  void started(FlowIndex flow, Bytes, StepTime) override { starts.push_back(flow); }
  void moved(FlowIndex flow, StepTime from, StepTime to, BytesPerSecond rate,
             LinkIndex held_by) override {
    spans.push_back({flow, to_seconds(from).base_units(), to_seconds(to).base_units(),
                     rate.base_units(), held_by});
  }
  void ended(FlowIndex flow, StepTime) override { ends.push_back(flow); }
};

/// A wide link and a narrow one, 100 and 50 bytes per second.
struct TwoLinks {
  FlowNetwork network;
  LinkIndex wide = network.add_link(BytesPerSecond{100});
  LinkIndex narrow = network.add_link(BytesPerSecond{50});
  FlowIndex a = network.add_flow(std::array{FlowEdge{wide, 1}});
  FlowIndex b = network.add_flow(std::array{FlowEdge{wide, 1}, FlowEdge{narrow, 1}});
};
constexpr StepTime at_second(std::uint64_t s) { return {s * 1'000'000'000'000}; }

TEST_CASE("an observer sees every byte, and which link held a flow to its rate") {
  TwoLinks t;
  Log log;
  t.network.observe(&log);
  t.network.start(t.b, Bytes{100}, {});
  t.network.settle({});
  t.network.start(t.a, Bytes{50}, at_second(1));  // 50 each: the rate of b stays
  t.network.settle(at_second(1));
  std::vector<FlowIndex> ended;
  t.network.collect_ended(at_second(2), ended);
  t.network.settle(at_second(2));
  CHECK(ended == std::vector{t.a, t.b});
  REQUIRE(log.spans.size() == 2);
  CHECK(log.spans[0].flow == t.a);
  CHECK(log.spans[0].rate == 50);
  CHECK(log.spans[0].held_by == t.wide);
  CHECK(log.spans[1].from == 0);
  CHECK(log.spans[1].to == 2);
  CHECK(log.spans[1].held_by == t.narrow);
  CHECK(log.starts == std::vector{t.b, t.a});
  CHECK(log.ends == std::vector{t.a, t.b});
}

TEST_CASE("a flow on hold moves nothing and frees its links, what is left goes on after it") {
  TwoLinks t;
  t.network.start(t.a, Bytes{150}, {});
  t.network.start(t.b, Bytes{100}, {});
  t.network.settle({});  // 50 each
  t.network.hold(t.b, at_second(1));
  t.network.settle(at_second(1));
  CHECK(t.network.active(t.b));
  CHECK(t.network.rate(t.a).base_units() == 100);
  CHECK(t.network.next_end() == at_second(2));
  std::vector<FlowIndex> ended;
  t.network.collect_ended(at_second(2), ended);
  t.network.settle(at_second(2));
  CHECK(t.network.idle());
  t.network.resume(t.b, at_second(10));
  t.network.settle(at_second(10));
  CHECK(t.network.next_end() == at_second(11));
  t.network.collect_ended(at_second(11), ended);
  CHECK(t.network.carried(t.narrow).base_units() == doctest::Approx(100));
  CHECK(t.network.carried(t.wide).base_units() == doctest::Approx(250));
}

TEST_CASE("a flow that gets another weight on the way goes on where it was") {
  TwoLinks t;
  Log log;
  t.network.observe(&log);
  t.network.start(t.a, Bytes{200}, {});
  t.network.start(t.b, Bytes{75}, {});
  t.network.settle({});  // 50 each
  t.network.set_weight(t.a, 3, at_second(1));
  t.network.settle(at_second(1));
  CHECK(t.network.rate(t.a).base_units() == 75);
  CHECK(t.network.rate(t.b).base_units() == 25);
  CHECK(t.network.next_end() == at_second(2));
  std::vector<FlowIndex> ended;
  t.network.collect_ended(at_second(2), ended);
  t.network.settle(at_second(2));
  CHECK(ended == std::vector{t.b});
  CHECK(t.network.weight(t.a) == 3);
  CHECK(t.network.rate(t.a).base_units() == 100);  // alone, a weight is nothing
  CHECK(t.network.carried(t.wide).base_units() == doctest::Approx(125));
  CHECK(log.starts == std::vector{t.a, t.b});
}

TEST_CASE("a flow that starts on hold waits for its links, and is then as any other") {
  TwoLinks t;
  t.network.start_held(t.b, Bytes{100}, {});
  t.network.settle({});
  CHECK(t.network.active(t.b));
  CHECK(t.network.idle());
  t.network.resume(t.b, at_second(5));
  t.network.settle(at_second(5));
  CHECK(t.network.next_end() == at_second(7));
}

TEST_CASE("a flow handed over goes on where it was, by another way") {
  TwoLinks t;
  t.network.start(t.b, Bytes{300}, {});
  t.network.settle({});
  t.network.hand_over(t.b, t.a, at_second(2));
  t.network.resume(t.a, at_second(2));
  t.network.settle(at_second(2));
  CHECK_FALSE(t.network.active(t.b));
  CHECK(t.network.next_end() == at_second(4));  // 200 bytes at 100
  std::vector<FlowIndex> ended;
  t.network.collect_ended(at_second(4), ended);
  CHECK(ended == std::vector{t.a});
  CHECK(t.network.carried(t.narrow).base_units() == doctest::Approx(100));
}

}  // namespace

TEST_CASE("FlowNetwork: a flow alone ends after its bytes at line rate, and not a tick before") {
  OneLink one;
  one.network.start(one.a, Bytes{1000}, {5});  // 1 us
  CHECK(one.network.active(one.a));
  one.network.settle({5});
  CHECK(one.network.rate(one.a) == gigabytes_per_second(1));
  CHECK(one.network.load(one.link) == gigabytes_per_second(1));
  const StepTime end{1'000'005};
  CHECK(one.network.next_end() == end);
  CHECK(one.ended_at({end.ps - 1}).empty());
  CHECK(one.network.active(one.a));
  CHECK(one.ended_at(end) == std::vector<FlowIndex>{one.a});
  CHECK(one.network.idle());
  CHECK(one.network.rate(one.a) == BytesPerSecond{});
  CHECK(one.network.load(one.link) == BytesPerSecond{});
  CHECK(one.network.carried(one.link) / Bytes{1000} == doctest::Approx(1.0).epsilon(1e-12));
}

TEST_CASE("FlowNetwork: a second flow halves the first, and returns the link when it ends") {
  // a: 3 kB from 0; b: 1 kB from 1 us. a has 2 kB left at 1 us; at half speed b ends at 3 us, when
  // a has 1 kB left: a ends at 4 us.
  OneLink one;
  one.network.start(one.a, Bytes{3000}, {});
  one.network.settle({});
  one.network.start(one.b, Bytes{1000}, {1'000'000});
  one.network.settle({1'000'000});
  CHECK(one.network.next_end() == StepTime{3'000'000});
  CHECK(one.ended_at({3'000'000}) == std::vector<FlowIndex>{one.b});
  one.network.settle({3'000'000});
  CHECK(one.network.next_end() == StepTime{4'000'000});
  CHECK(one.ended_at({4'000'000}) == std::vector<FlowIndex>{one.a});
  CHECK(one.network.carried(one.link) / Bytes{4000} == doctest::Approx(1.0).epsilon(1e-12));
}

TEST_CASE("FlowNetwork: of two flows that share a link a lead of 1 ns becomes 2 ns") {
  // 1 kB each. Had both started at 1 ns they would end at 2001 ns; a moves 1 B alone until 1 ns,
  // and the 999 B that are left at half speed until 1999 ns. b ends with all bytes, at 2000 ns.
  OneLink one;
  one.network.start(one.a, Bytes{1000}, {});
  one.network.settle({});
  one.network.start(one.b, Bytes{1000}, {1'000});
  one.network.settle({1'000});
  CHECK(one.network.next_end() == StepTime{1'999'000});
  CHECK(one.ended_at({1'999'000}) == std::vector<FlowIndex>{one.a});
  one.network.settle({1'999'000});
  CHECK(one.network.next_end() == StepTime{2'000'000});
}

TEST_CASE("FlowNetwork: ends of one tick come together, lowest flow first") {
  OneLink one;
  one.network.start(one.b, Bytes{500}, {});
  one.network.start(one.a, Bytes{500}, {});
  one.network.settle({});
  CHECK(one.ended_at({1'000'000}) == std::vector<FlowIndex>{one.a, one.b});
}

TEST_CASE("FlowNetwork: a byte on a fast link ends in the instant in which it starts") {
  FlowNetwork network;
  const std::vector<FlowEdge> edges{{network.add_link(BytesPerSecond{1e13}), 1.0}};
  const FlowIndex flow = network.add_flow(edges);
  network.start(flow, Bytes{1}, {9});
  network.settle({9});
  CHECK(network.next_end() == StepTime{9});
  std::vector<FlowIndex> ended;
  network.collect_ended({9}, ended);
  CHECK(ended == std::vector<FlowIndex>{flow});
}

TEST_CASE("FlowNetwork: a flow that outlasts the clock ends with it") {
  FlowNetwork network;
  const std::vector<FlowEdge> edges{{network.add_link(BytesPerSecond{1e-300}), 1.0}};
  const FlowIndex flow = network.add_flow(edges);
  const StepTime longest = to_step_time(Seconds{1.7e7});
  std::vector<FlowIndex> ended;
  network.start(flow, Bytes{1e300}, {});
  network.settle({});
  CHECK(network.next_end() == longest);
  network.collect_ended(longest, ended);
  network.start(flow, Bytes{1e300}, longest);
  network.settle(longest);
  CHECK(network.next_end() == StepTime{std::numeric_limits<std::uint64_t>::max()});
}

TEST_CASE("FlowNetwork: ends when a slow simulation ends it, and moves what was started") {
  const std::uint64_t seed = test::test_seed();
  CAPTURE(seed);
  for (std::uint32_t trial = 0; trial < 30; ++trial) {
    CAPTURE(trial);
    RandomStream random({.seed = seed, .trajectory = trial});
    FlowNetwork network;
    const test::ReferenceNetwork reference = test::random_network(random, network);
    const Plan plan = random_plan(random, reference.flows.size());
    const Ends ends = run(network, plan);
    const Ends expected = run_reference(reference, plan);
    std::vector<double> carried(network.links(), 0.0);
    std::size_t messages = 0;
    for (std::size_t f = 0; f < plan.size(); ++f) {
      CAPTURE(f);
      REQUIRE(ends[f].size() == expected[f].size());
      for (std::size_t m = 0; m < ends[f].size(); ++m) {
        // Half a tick for each end that shifted this one, up to about 300 of them.
        REQUIRE(std::abs(ends[f][m] - expected[f][m]) < 150e-12);
        for (const auto& [link, coefficient] : reference.flows[f].uses) {
          carried[link] += coefficient * plan[f][m].amount.base_units();
        }
        ++messages;
      }
    }
    for (LinkIndex link = 0; link < network.links(); ++link) {
      // A message is off by what its link moves in half a tick.
      const Bytes rounding =
          static_cast<double>(messages) * (network.capacity(link) * Seconds{1e-12});
      CHECK(std::abs((network.carried(link) - Bytes{carried[link]}) / Bytes{1}) <=
            rounding / Bytes{1} + 1e-12 * carried[link]);
    }
  }
}

}  // namespace lockstep
