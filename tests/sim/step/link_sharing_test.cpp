// Data-, pipeline- and tensor-parallel transfers on common links, worked out on paper.
#include <cstdint>
#include <doctest/doctest.h>
#include <vector>

#include "tests/sim/step/hand_plan.hpp"

namespace lockstep {
namespace {

using test::bare_cost;
using test::HandPlan;
using test::kFree;

/// Ticks are picoseconds: a byte a tick.
constexpr BytesPerSecond kByteATick{1e12};

ProgramItem item(Pass pass, std::uint32_t segment) {
  return {.work = {pass, false, 0, 0}, .first_segment = segment, .segments = 1};
}

/// Adds a reduction that the stage's first segment posts when it ends.
void post_reduction(StagePlan& stage, double bytes, const CollectiveCost& cost) {
  stage.channels = {{DataGroupKind::replicas, CollectiveOp::all_reduce, Bytes{bytes}, cost}};
  stage.collectives = {{CollectiveOp::all_reduce, Bytes{bytes}, StepTime{}, 0}};
  stage.segments.front().posts = 1;
  stage.reduces_end = 1;
}

/// Two replicas in one NVLink domain: a forward pass of 10 ticks, a reduction of `reduced` bytes,
/// and beside it a backward pass that moves `tensor` bytes.
HandPlan replicas_on_nvlink(double reduced, double tensor) {
  HandPlan hand{1, 2, 2};
  hand.scenario.node.gpu.nvlink_bandwidth = kByteATick;
  StagePlan& stage = hand.plan.stages.front();
  stage.items = {item(Pass::forward, 0), item(Pass::backward, 1)};
  stage.segments.resize(2);
  stage.segments[0].compute = {10};
  stage.segments[1].amounts[0] = tensor;
  if (reduced > 0) post_reduction(stage, reduced, bare_cost(kFree, 1, 0));
  hand.plan.data_over_nvlink = true;
  hand.plan.layers[0].rate = kFree.base_units();
  return hand;
}

/// Two stages of two replicas, each GPU a node of its own with a NIC of a byte a tick. The first
/// stage's forward pass of 10 ticks ends in a reduction and a message of as many bytes.
HandPlan replicas_on_network(double reduced, double message) {
  HandPlan hand{2, 2, 1};
  hand.scenario.node.nic_bandwidth = kByteATick;
  hand.plan.message = Bytes{message};
  for (StagePlan& stage : hand.plan.stages) {
    stage.items = {item(Pass::forward, 0)};
    stage.segments.resize(1);
    stage.segments[0].compute = {10};
  }
  hand.plan.stages[0].items[0].sends_message = true;
  hand.plan.stages[0].message_targets[0] = {{.chunk = 0, .forward = true}};
  hand.plan.stages[1].items[0].needs_message = true;
  if (reduced > 0) post_reduction(hand.plan.stages[0], reduced, bare_cost(kFree, 0, 1));
  return hand;
}

/// Replicas of one GPU on `nodes` leaves of their own: rings that all cross the spine.
std::uint64_t cross_leaf_reduction(int nodes, double oversubscription) {
  constexpr int kGpus = 8;
  HandPlan hand{1, nodes * kGpus, kGpus};
  hand.scenario.node.nic_bandwidth = kByteATick;
  FabricSpec& fabric = hand.scenario.fabric;
  fabric.kind = FabricKind::fat_tree;
  fabric.leaf_ports_down = kGpus;
  fabric.leaf_oversubscription = oversubscription;
  StagePlan& stage = hand.plan.stages.front();
  stage.items = {item(Pass::backward, 0)};
  stage.segments.resize(1);
  post_reduction(stage, 1000, bare_cost(kFree, 0, 1));
  return hand.run().end.ps;
}

}  // namespace

TEST_CASE("NVLink: tensor- and data-parallel bytes of one GPU share its port") {
  CHECK(replicas_on_nvlink(0, 100).run().end.ps == 10 + 100);
  CHECK(replicas_on_nvlink(100, 0).run().end.ps == 10 + 100);
  CHECK(replicas_on_nvlink(100, 100).run().end.ps == 10 + 200);
  // Both have half of the port until the smaller one is done at 10 + 2 x 40.
  CHECK(replicas_on_nvlink(100, 40).run().end.ps == 10 + 140);
}

TEST_CASE("NVLink: transfers that do not meet in time do not slow each other") {
  HandPlan hand = replicas_on_nvlink(100, 100);
  hand.plan.stages.front().segments[1].compute = {100};
  CHECK(hand.run().end.ps == 10 + 100 + 100);
}

TEST_CASE(
    "inside layers: of a transfer that compute covers only what reaches beyond is waited for") {
  const auto covered = [](double bytes, std::uint64_t least) {
    HandPlan hand = replicas_on_nvlink(0, bytes);
    Segment& segment = hand.plan.stages.front().segments[1];
    segment.compute = {600};
    segment.covered[0] = {500};
    segment.least[0] = {least};
    return hand;
  };
  const auto end = [](const HandPlan& hand) { return hand.run().end.ps; };
  CHECK(end(covered(300, 500)) == 10 + 600);
  CHECK(end(covered(500, 500)) == 10 + 600);
  CHECK(end(covered(800, 500)) == 10 + 100 + 800);
  CHECK(covered(800, 500).run().actors.front().layer[0].ps == 300);
  // Of some transfers a part is waited for however fast they are.
  CHECK(end(covered(300, 550)) == 10 + 100 + 550);
  CHECK(end(covered(800, 550)) == 10 + 100 + 800);
}

TEST_CASE("inside layers: GPUs that exchange tokens wait for the slowest of their block alone") {
  HandPlan hand{1, 4, 4};
  hand.scenario.node.gpu.nvlink_bandwidth = kByteATick;
  StagePlan& stage = hand.plan.stages.front();
  stage.items = {item(Pass::forward, 0)};
  stage.segments.resize(1);
  stage.segments[0].compute = {50};
  stage.segments[0].amounts[static_cast<std::size_t>(Axis::expert)] = 100;
  hand.plan.layers[static_cast<std::size_t>(Axis::expert)].rate = kFree.base_units();
  // Replicas 0 and 1 are a block, 2 and 3 another; 1 takes twice as long.
  const std::vector<ReplicaClass> classes{
      {0, 1, {}, 0, 0}, {1, 1, {2.0}, 0, 0}, {2, 1, {}, 0, 1}, {3, 1, {}, 0, 1}};
  const Fabric fabric = own_fabric(hand.scenario, hand.plan);
  FlowNetwork network;
  FabricLinks links{fabric, network};
  const Wiring wiring{hand.scenario, hand.plan, classes, {.links = &links, .nodes = {}}};
  const ReplayResult result = replay(hand.plan, classes, wiring, Recording::none);
  const auto exchanged = [&](std::size_t replica) {
    return result.actors[replica].layer[static_cast<std::size_t>(Axis::expert)].ps;
  };
  CHECK(result.end.ps == 100 + 100);
  CHECK(result.actors[0].straggler.ps == 50);
  CHECK(result.actors[1].straggler.ps == 0);
  // Its block is done at 150, and then it waits for the other one before the optimiser: with a
  // stage there is no bubble.
  CHECK(result.actors[2].straggler.ps == 50);
  CHECK(result.actors[2].bubble.ps == 0);
  for (std::size_t replica = 0; replica < 4; ++replica) CHECK(exchanged(replica) == 100);
}

TEST_CASE("inside layers: GPUs of an NVLink domain that exchange tokens wait in every layer") {
  // Two stages of two replicas: 50 ticks of compute and 10 of tokens for the other one's experts.
  HandPlan hand{2, 2, 4};
  for (StagePlan& stage : hand.plan.stages) {
    stage.items = {item(Pass::forward, 0)};
    stage.segments.resize(1);
    stage.segments[0].compute = {50};
    stage.segments[0].tensor = {10};
    stage.segments[0].closed[static_cast<std::size_t>(Axis::expert)] = {10};
  }
  hand.plan.stages[0].items[0].sends_message = true;
  hand.plan.stages[0].message_targets[0] = {{.chunk = 0, .forward = true}};
  hand.plan.stages[1].items[0].needs_message = true;
  // A GPU of either replica takes twice as long, one in each stage.
  std::vector<ReplicaClass> classes{{0, 1, {2.0, 1.0}}, {1, 1, {1.0, 2.0}}};
  const auto run = [&] {
    const Fabric fabric = own_fabric(hand.scenario, hand.plan);
    FlowNetwork network;
    FabricLinks links{fabric, network};
    const Wiring wiring{hand.scenario, hand.plan, classes, {.links = &links, .nodes = {}}};
    return replay(hand.plan, classes, wiring, Recording::none);
  };
  for (ReplicaClass& c : classes) c.block = kNoBlock;
  CHECK(run().end.ps == (100 + 10) + (50 + 10));
  for (ReplicaClass& c : classes) c.block = 0;
  const ReplayResult together = run();
  CHECK(together.end.ps == (100 + 10) + (100 + 10));
  CHECK(together.actors[0].straggler.ps == 0);
  CHECK(together.actors[1].straggler.ps == 50);  // stage 1 of the first replica
  CHECK(together.actors[2].straggler.ps == 50);  // stage 0 of the second
  CHECK(together.actors[3].straggler.ps == 0);
}

TEST_CASE("data groups: a slow replica delays its own group first") {
  HandPlan hand{1, 4, 4};
  StagePlan& stage = hand.plan.stages.front();
  stage.items = {item(Pass::forward, 0)};
  stage.segments.resize(1);
  stage.segments[0].compute = {50};
  post_reduction(stage, 100, bare_cost(kByteATick, 0, 0));
  stage.channels.front().group = DataGroupKind::shard;
  stage.groups[static_cast<std::size_t>(DataGroupKind::shard)] = {.ranks = 2, .replicas = 2};
  // Replicas 0 and 1 are a group, 2 and 3 another; 3 takes twice as long.
  std::vector<ReplicaClass> classes{{0, 1, {}}, {1, 1, {}}, {2, 1, {}}, {3, 1, {2.0}}};
  const auto run = [&] {
    const Fabric fabric = own_fabric(hand.scenario, hand.plan);
    FlowNetwork network;
    FabricLinks links{fabric, network};
    const Wiring wiring{hand.scenario, hand.plan, classes, {.links = &links, .nodes = {}}};
    return replay(hand.plan, classes, wiring, Recording::all);
  };
  const auto straggler = [](const ReplayResult& result, std::size_t replica) {
    return result.actors[replica].straggler.ps;
  };
  const ReplayResult together = run();
  CHECK(together.end.ps == 100 + 100);
  CHECK(together.collectives.size() == 1);
  CHECK(straggler(together, 0) == 50);
  classes[2].data_group[static_cast<std::size_t>(DataGroupKind::shard)] = 2;
  classes[3].data_group = classes[2].data_group;
  const ReplayResult apart = run();
  CHECK(apart.end.ps == 100 + 100);
  CHECK(apart.collectives.size() == 2);
  CHECK(apart.actors[0].data.ps == 100);
  CHECK(straggler(apart, 0) == 50);  // until the other group is ready for the optimiser
  CHECK(apart.actors[0].bubble.ps == 0);
  CHECK(straggler(apart, 2) == 50);
  CHECK(straggler(apart, 3) == 0);
}

TEST_CASE("network: a pipeline message and a reduction that leave one NIC share it") {
  // The second stage computes for 10 ticks when the message is there.
  CHECK(replicas_on_network(0, 100).run().end.ps == 10 + 100 + 10);
  CHECK(replicas_on_network(100, 100).run().end.ps == 10 + 200 + 10);
  // The message has half of the NIC for 2 x 100 ticks, the reduction the rest afterwards.
  CHECK(replicas_on_network(400, 100).run().end.ps == 10 + 500);
}

TEST_CASE("network: o:1 oversubscription divides the rate of traffic that all crosses by o") {
  for (const int nodes : {2, 3, 8}) {
    CAPTURE(nodes);
    CHECK(cross_leaf_reduction(nodes, 1) == 1000);
    CHECK(cross_leaf_reduction(nodes, 2) == 2000);
    CHECK(cross_leaf_reduction(nodes, 4) == 4000);
  }
}

TEST_CASE("network: bytes that the flows of a step put on a NIC are carried by it") {
  const HandPlan hand = replicas_on_network(400, 100);
  const std::vector<ReplicaClass> classes{{0, 1, {}}, {1, 1, {}}};
  const Fabric fabric = own_fabric(hand.scenario, hand.plan);
  FlowNetwork network;
  FabricLinks links{fabric, network};
  const Wiring wiring{hand.scenario, hand.plan, classes, {.links = &links, .nodes = {}}};
  (void)replay(hand.plan, classes, wiring, Recording::none);
  // Stage 0 of both replicas sends 100 of messages and 400 of a ring; its ring also arrives there.
  // Stage 1 receives 100. Paces of messages and of the ring carry what runs over them.
  std::vector<double> nics;
  for (LinkIndex link = 0; link < network.links(); ++link) {
    if (network.capacity(link) == kByteATick) nics.push_back(network.carried(link).base_units());
  }
  double sum = 0;
  for (const double bytes : nics) sum += bytes;
  // Rounding of an end to a tick moves at most half a byte a flow and link.
  CHECK(sum == doctest::Approx(2 * (500 + 400 + 100)).epsilon(0.01));
}

}  // namespace lockstep
