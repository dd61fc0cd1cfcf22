// A trace beside a training step: two kinds of process of one engine, on one fabric.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <string>
#include <vector>

#include "tests/sim/step/hand_plan.hpp"
#include "tests/sim/trace/sample_traces.hpp"

namespace lockstep {
namespace {

using test::HandPlan;

constexpr BytesPerSecond kNic = gigabytes_per_second(50);  // of a DGX H100
constexpr Bytes kActivations{500e6};                       // 10 ms at that rate

/// Two stages of eight replicas, each stage a node: the first computes 10 ms, then each of its GPUs
/// sends over its own NIC to the other node, where 10 ms follow.
HandPlan stages_on_two_nodes() {
  HandPlan hand{2, 8, 8};
  hand.scenario.node.nic_bandwidth = kNic;
  hand.plan.message = kActivations;
  for (StagePlan& stage : hand.plan.stages) {
    stage.items = {{.work = {Pass::forward, false, 0, 0}, .first_segment = 0, .segments = 1}};
    stage.segments.resize(1);
    stage.segments[0].compute = to_step_time(Seconds{0.010});
  }
  hand.plan.stages[0].items[0].sends_message = true;
  hand.plan.stages[0].message_targets[0] = {{.chunk = 0, .forward = true}};
  hand.plan.stages[1].items[0].needs_message = true;
  return hand;
}

/// Rank 0 of node 0 sends to rank 8, the first of node 1, for much longer than the step takes.
Trace long_send() {
  std::string goal = "num_ranks 9\nrank 0 {\nl1: send 10000000000b to 8 tag 0\n}\n";
  for (int rank = 1; rank < 8; ++rank) goal += fmt::format("rank {} {{\nl1: calc 1\n}}\n", rank);
  goal += "rank 8 {\nl1: recv 10000000000b from 0 tag 0\n}\n";
  return join(read_goal("send.goal", goal));
}

struct Ends {
  StepTime step, trace, last;
};
/// Runs either or both from `begin` on, on one fabric of two nodes.
Ends ends(bool step, bool trace, StepTime begin = {}) {
  const HandPlan hand = stages_on_two_nodes();
  std::vector<ReplicaClass> classes;
  for (int d = 0; d < 8; ++d) classes.push_back({d, 1, {}});
  const Fabric fabric = own_fabric(hand.scenario, hand.plan);
  FlowNetwork network;
  FabricLinks links{fabric, network};
  Engine engine(network);

  const Site site{.links = &links, .nodes = {}};
  const Wiring wiring{hand.scenario, hand.plan, classes, site};
  RunningStep training(hand.plan, classes, wiring, false);
  if (step) engine.add(training);
  const Trace send = long_send();
  const TraceMatches matches = match(send);
  const Cluster cluster = test::trace_cluster(2);
  const TraceReplayOptions options;
  RunningTrace sending(send, matches, cluster, options, site);
  if (trace) engine.add(sending);

  Ends out{.step = {}, .trace = {}, .last = engine.run(begin)};
  if (step) out.step = training.finish().end;
  if (trace) out.trace = sending.finish().end;
  return out;
}

TEST_CASE("a trace and a step on one fabric share the NIC that both send over") {
  const StepTime step_alone = ends(true, false).step, trace_alone = ends(false, true).trace;
  REQUIRE(step_alone < trace_alone);
  const Ends both = ends(true, true);
  // The message of the replica on that NIC moves at half the rate for all of its time.
  const Seconds longer = to_seconds(both.step) - to_seconds(step_alone);
  CHECK(longer.base_units() == doctest::Approx(kActivations / kNic / Seconds{1}).epsilon(1e-9));
  CHECK(both.trace > trace_alone);
  // No more than what the step's message took of the NIC is missing.
  CHECK(to_seconds(both.trace - trace_alone) < 2 * (kActivations / kNic));
  CHECK(both.last == both.trace);
}

TEST_CASE("a step and a trace take the same time whenever they begin") {
  const StepTime begin{7'000'000'000'000};
  const Ends early = ends(true, true), late = ends(true, true, begin);
  CHECK(late.step == early.step);
  CHECK(late.trace == early.trace);
  CHECK(late.last == begin + early.last);
}

}  // namespace
}  // namespace lockstep
