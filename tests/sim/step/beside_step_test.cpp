// A trace and a traffic pattern beside a training step: kinds of process of one engine, on one
// fabric.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <string>
#include <vector>

#include "sim/scenario/read_traffic.hpp"
#include "sim/traffic/simulate_traffic.hpp"
#include "tests/sim/step/hand_plan.hpp"
#include "tests/sim/trace/sample_traces.hpp"
#include "tests/support/presets.hpp"

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

/// GPU 1 of node 0 sends as much to its like of node 1.
TrafficScenario long_message() {
  return read_traffic("traffic.json", R"({
      "cluster": {"node": "dgx_h100", "nodes": 2, "fabric": {"kind": "ideal"}}, "efficiency": 1,
      "traffic": [{"kind": "pairs", "size": "10 GB", "pairs": [[1, 9]]}]})",
                      test::presets());
}

struct Ends {
  StepTime step, trace, traffic, last;
};
/// Runs some of them from `begin` on, on one fabric of two nodes.
Ends ends(bool step, bool trace, bool traffic, StepTime begin = {}) {
  const HandPlan hand = stages_on_two_nodes();
  std::vector<ReplicaClass> classes;
  for (int d = 0; d < 8; ++d) classes.push_back({d, 1, {}});
  const Fabric fabric = own_fabric(hand.scenario, hand.plan);
  FlowNetwork network;
  FabricLinks links{fabric, network};
  Engine engine(network);

  const Site site{.links = &links, .nodes = {}};
  const Wiring wiring{hand.scenario, hand.plan, classes, site};
  RunningStep training(hand.plan, classes, wiring, Recording::none);
  if (step) engine.add(training);
  const Trace send = long_send();
  const TraceMatches matches = match(send);
  const Cluster cluster = test::trace_cluster(2);
  const TraceReplayOptions options;
  RunningTrace sending(send, matches, cluster, options, site);
  if (trace) engine.add(sending);
  const TrafficScenario scenario = long_message();
  TrafficSimulation pattern(scenario, TrafficNetwork(scenario.cluster, links));
  if (traffic) engine.add(pattern);

  Ends out{.step = {}, .trace = {}, .traffic = {}, .last = engine.run(begin)};
  if (step) out.step = training.finish().end;
  if (trace) out.trace = sending.finish().end;
  if (traffic) out.traffic = pattern.last_end();
  return out;
}

/// What the step's message takes of a NIC.
constexpr Seconds kMessage = kActivations / kNic;

TEST_CASE("a trace and a step on one fabric share the NIC that both send over") {
  const StepTime step_alone = ends(true, false, false).step;
  const StepTime trace_alone = ends(false, true, false).trace;
  REQUIRE(step_alone < trace_alone);
  const Ends both = ends(true, true, false);
  // The message of the replica on that NIC moves at half the rate for all of its time.
  CHECK(to_seconds(both.step - step_alone) / kMessage == doctest::Approx(1).epsilon(1e-9));
  CHECK(both.trace > trace_alone);
  CHECK(to_seconds(both.trace - trace_alone) < 2 * kMessage);
  CHECK(both.last == both.trace);
}

TEST_CASE("traffic and a step on one fabric share the NIC that both send over") {
  const StepTime step_alone = ends(true, false, false).step;
  const StepTime traffic_alone = ends(false, false, true).traffic;
  CHECK(to_seconds(traffic_alone) / (Bytes{10e9} / kNic) == doctest::Approx(1).epsilon(1e-9));
  const Ends both = ends(true, false, true);
  // The NIC is never idle: it has the step's message to send besides.
  CHECK(to_seconds(both.step - step_alone) / kMessage == doctest::Approx(1).epsilon(1e-9));
  CHECK(to_seconds(both.traffic - traffic_alone) / kMessage == doctest::Approx(1).epsilon(1e-9));
}

TEST_CASE("a trace and traffic beside a step each slow their own replica, whenever they begin") {
  const Ends two = ends(true, true, false), all = ends(true, true, true);
  CHECK(all.step == two.step);
  CHECK(all.trace == two.trace);
  CHECK(all.traffic == ends(true, false, true).traffic);
  const StepTime begin{7'000'000'000'000};
  const Ends late = ends(true, true, true, begin);
  CHECK(late.step == all.step);
  CHECK(late.trace == all.trace);
  CHECK(late.traffic == begin + all.traffic);
  CHECK(late.last == begin + all.last);
}

}  // namespace
}  // namespace lockstep
