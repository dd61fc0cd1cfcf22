#include "sim/core/engine.hpp"

#include <algorithm>
#include <array>
#include <doctest/doctest.h>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/random.hpp"
#include "tests/sim/core/message_process.hpp"
#include "tests/sim/core/random_network.hpp"
#include "tests/sim/core/test_seed.hpp"

namespace lockstep {
namespace {

constexpr StepTime whole_seconds(std::uint64_t s) { return {s * 1'000'000'000'000}; }

using Lines = std::vector<std::string>;

/// Messages that write down what happens, second by second.
class LoggedMessages final : public test::MessageProcess {
 public:
  LoggedMessages(FlowNetwork& network, std::string name, Lines& log)
      : MessageProcess(network), name_(std::move(name)), log_(log) {}

  void flows_ended(std::span<const FlowIndex> flows, StepTime now) override {
    for (const FlowIndex flow : flows) note(flow, "ends", now);
    MessageProcess::flows_ended(flows, now);
  }

 private:
  void start(FlowIndex flow, StepTime now) override {
    note(flow, "starts", now);
    MessageProcess::start(flow, now);
  }
  void note(FlowIndex flow, const std::string& what, StepTime now) {
    log_.push_back(std::to_string(now.ps / whole_seconds(1).ps) + " s: " + name_ +
                   std::to_string(flow) + " " + what);
  }

  std::string name_;
  Lines& log_;
};

/// Flows of a link of 100 B/s each, and one of two processes to claim each.
struct TwoProcesses {
  FlowNetwork network;
  Engine engine{network};
  Lines log;
  LoggedMessages a{network, "a", log}, b{network, "b", log};

  TwoProcesses() {
    engine.add(a);
    engine.add(b);
  }
  FlowIndex add(LoggedMessages& process, std::vector<test::Message> messages) {
    const LinkIndex link = network.add_link(BytesPerSecond{100});
    const FlowIndex flow = network.add_flow(std::array{FlowEdge{link, 1}});
    engine.claim(process);
    process.add(flow, std::move(messages));
    return flow;
  }
};

TEST_CASE("engine: in an instant flows end by index, then each process handles its events") {
  TwoProcesses two;
  // 0 and 2 are a's, 1 and 3 b's. At 1 s the first messages of 0, 1 and 2 end, at 2 s the second
  // one of 2. At 1 s all of them start again, and 3 for the first time.
  two.add(two.a, {{{}, Bytes{100}}, {{}, Bytes{300}}});
  two.add(two.b, {{{}, Bytes{100}}, {{}, Bytes{300}}});
  two.add(two.a, {{{}, Bytes{100}}, {{}, Bytes{100}}});
  two.add(two.b, {{whole_seconds(1), Bytes{300}}});
  CHECK(two.engine.run() == whole_seconds(4));
  CHECK(two.log == Lines{"0 s: a0 starts", "0 s: a2 starts", "0 s: b1 starts",  //
                         "1 s: a0 ends", "1 s: b1 ends", "1 s: a2 ends",        //
                         "1 s: a0 starts", "1 s: a2 starts",                    //
                         "1 s: b3 starts", "1 s: b1 starts",  // 3 was scheduled first
                         "2 s: a2 ends",                      //
                         "4 s: a0 ends", "4 s: b1 ends", "4 s: b3 ends"});
}

TEST_CASE("engine: processes slow each other on a link that both use") {
  FlowNetwork network;
  Engine engine(network);
  const LinkIndex link = network.add_link(BytesPerSecond{100});
  test::MessageProcess a(network), b(network);
  const FlowIndex of_a = network.add_flow(std::array{FlowEdge{link, 1}});
  engine.add(a);
  const FlowIndex of_b = network.add_flow(std::array{FlowEdge{link, 1}});
  engine.add(b);
  CHECK(&engine.owner(of_a) == &a);
  CHECK(&engine.owner(of_b) == &b);
  // a has the link for itself for a second and again at the end, b for none of its time.
  a.add(of_a, {{{}, Bytes{200}}});
  b.add(of_b, {{whole_seconds(1), Bytes{50}}});
  engine.run();
  CHECK(b.ends(of_b).front() == whole_seconds(2));
  CHECK(a.ends(of_a).front() == StepTime{whole_seconds(5).ps / 2});
}

/// Takes a flow off its links at a time, and puts it back some time later; 0: never.
class Interruption final : public Process {
 public:
  Interruption(FlowNetwork& network, FlowIndex flow, StepTime at, StepTime lasts, Lines& log)
      : network_(network), flow_(flow), next_(at), lasts_(lasts), log_(log) {}

  [[nodiscard]] StepTime next_event() const override { return next_; }
  void flows_ended(std::span<const FlowIndex> /*flows*/, StepTime /*now*/) override {}
  void handle_events(StepTime now) override {
    if (next_ > now) return;
    const bool back = network_.held(flow_);
    log_.emplace_back(back ? "goes on" : "is held");
    back ? network_.resume(flow_, now) : network_.hold(flow_, now);
    next_ = back || lasts_ == StepTime{} ? kNever : now + lasts_;
  }
  [[nodiscard]] bool done() const override { return true; }

 private:
  FlowNetwork& network_;
  FlowIndex flow_;
  StepTime next_, lasts_;
  Lines& log_;
};

TEST_CASE("engine: a change waits until its instant has settled and no flow ends at it") {
  TwoProcesses two;
  const FlowIndex held = two.add(two.a, {{{}, Bytes{200}}});
  // Two messages that take less than half a tick each: they end in the instant of their start.
  const FlowIndex tiny = two.add(two.b, {{whole_seconds(1), Bytes{1e-12}}, {{}, Bytes{1e-12}}});
  Interruption change(two.network, held, whole_seconds(1), whole_seconds(1), two.log);
  two.engine.add_change(change);
  CHECK(two.engine.run() == whole_seconds(3));
  CHECK(two.b.ends(tiny) == std::vector{whole_seconds(1), whole_seconds(1)});
  CHECK(two.log == Lines{"0 s: a0 starts", "1 s: b1 starts", "1 s: b1 ends", "1 s: b1 starts",
                         "1 s: b1 ends", "is held", "goes on", "3 s: a0 ends"});
}

/// Adds a flow when it is asked to, and moves a message over it.
class LateFlow final : public Process {
 public:
  LateFlow(FlowNetwork& network, StepTime at) : network_(network), next_(at) {}

  [[nodiscard]] StepTime next_event() const override { return next_; }
  void flows_ended(std::span<const FlowIndex> flows, StepTime now) override {
    CHECK(flows.size() == 1);
    end_ = now;
  }
  void handle_events(StepTime now) override {
    if (next_ > now) return;
    const LinkIndex link = network_.add_link(BytesPerSecond{100});
    network_.start(network_.add_flow(std::array{FlowEdge{link, 1}}), Bytes{100}, now);
    next_ = kNever;
  }
  [[nodiscard]] bool done() const override { return end_ > StepTime{}; }
  [[nodiscard]] StepTime end() const { return end_; }

 private:
  FlowNetwork& network_;
  StepTime next_, end_;
};

TEST_CASE("engine: a flow that is added on the way belongs to the process that added it") {
  FlowNetwork network;
  LateFlow late(network, whole_seconds(2)), later(network, whole_seconds(3));
  Engine engine(network);
  engine.add(late);
  engine.add(later);
  CHECK(engine.run() == whole_seconds(4));
  CHECK(late.end() == whole_seconds(3));
  CHECK(later.end() == whole_seconds(4));
}

/// Waits for what never comes.
class Waiting final : public Process {
 public:
  explicit Waiting(std::string what) : what_(std::move(what)) {}

  [[nodiscard]] StepTime next_event() const override { return kNever; }
  void flows_ended(std::span<const FlowIndex> /*flows*/, StepTime /*now*/) override {}
  void handle_events(StepTime /*now*/) override {}
  [[nodiscard]] bool done() const override { return what_.empty(); }
  [[noreturn]] void fail_stuck(StepTime now) const override {
    throw std::runtime_error(what_ + " since " + std::to_string(now.ps / whole_seconds(1).ps) +
                             " s");
  }

 private:
  std::string what_;
};

TEST_CASE("engine: when nothing can happen any more, the first that waits words the error") {
  TwoProcesses two;
  two.add(two.a, {{whole_seconds(2), Bytes{100}}});
  std::array<Waiting, 3> waiting{Waiting(""), Waiting("no input"), Waiting("no room")};
  for (Waiting& process : waiting) two.engine.add(process);
  CHECK_THROWS_WITH_AS(two.engine.run(), "no input since 3 s", std::runtime_error);
}

TEST_CASE("engine: a flow that is held for good leaves its process stuck") {
  TwoProcesses two;
  const FlowIndex held = two.add(two.a, {{{}, Bytes{200}}});
  Interruption change(two.network, held, whole_seconds(1), {}, two.log);
  two.engine.add_change(change);
  CHECK_THROWS_WITH_AS(two.engine.run(), "a process waits for what never comes", std::logic_error);
}

TEST_CASE("engine: nothing to do is done at once") {
  FlowNetwork network;
  Engine engine(network);
  Waiting done("");
  engine.add(done);
  CHECK(engine.run(whole_seconds(7)) == whole_seconds(7));
}

/// A network whose flows are claimed, each for a process that is drawn.
struct ClaimedNetwork {
  FlowNetwork network;
  Engine engine{network};
  std::vector<std::unique_ptr<test::MessageProcess>> processes;
  std::vector<test::MessageProcess*> owners;  ///< by flow
  RandomStream draws;

  ClaimedNetwork(std::uint32_t count, RandomStream random) : draws(random) {
    for (std::uint32_t p = 0; p < count; ++p) {
      processes.push_back(std::make_unique<test::MessageProcess>(network));
      engine.add(*processes.back());
    }
  }
  LinkIndex add_link(BytesPerSecond capacity) { return network.add_link(capacity); }
  FlowIndex add_flow(std::span<const FlowEdge> edges) {
    owners.push_back(processes[draws.below(static_cast<std::uint32_t>(processes.size()))].get());
    const FlowIndex flow = network.add_flow(edges);
    engine.claim(*owners.back());
    return flow;
  }
};

TEST_CASE("engine: flows end when they do, whichever processes they belong to") {
  const std::uint64_t seed = test::test_seed();
  CAPTURE(seed);
  for (std::uint32_t trial = 0; trial < 20; ++trial) {
    CAPTURE(trial);
    const auto ends = [&](std::uint32_t processes) {
      RandomStream random({.seed = seed, .trajectory = trial});
      ClaimedNetwork claimed(processes, RandomStream({.seed = seed, .trajectory = ~trial}));
      (void)test::random_network(random, claimed);
      for (FlowIndex flow = 0; flow < claimed.owners.size(); ++flow) {
        claimed.owners[flow]->add(flow, test::random_messages(random));
      }
      claimed.engine.run();
      std::vector<std::vector<StepTime>> out;
      for (FlowIndex flow = 0; flow < claimed.owners.size(); ++flow) {
        out.push_back(claimed.owners[flow]->ends(flow));
      }
      return out;
    };
    const auto one = ends(1), four = ends(4);
    REQUIRE(one.size() == four.size());
    for (std::size_t flow = 0; flow < one.size(); ++flow) {
      CAPTURE(flow);
      REQUIRE(one[flow].size() == four[flow].size());
      for (std::size_t m = 0; m < one[flow].size(); ++m) {
        // Flows that start together do so in another order, so that rates differ in their last
        // bits: half a tick for each end that shifted this one, up to about 300 of them.
        const auto [least, most] = std::minmax(one[flow][m], four[flow][m]);
        REQUIRE((most - least).ps <= 150);
      }
    }
  }
}

}  // namespace
}  // namespace lockstep
