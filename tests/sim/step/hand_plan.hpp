// Step plans made by hand on a machine made by hand, so that a replay can be worked out on paper.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/step/plan.hpp"
#include "sim/step/replay.hpp"
#include "sim/step/wiring.hpp"

namespace lockstep::test {

/// So fast that whole messages take less than a tick.
constexpr BytesPerSecond kFree{1e18};

/// A cost that is a rate and nothing else: every payload byte leaves over both kinds of wire.
inline CollectiveCost bare_cost(BytesPerSecond rate, double nvlink, double network) {
  return {.latency = Seconds{},
          .payload_rate = rate,
          .nvlink_coefficient = nvlink,
          .network_coefficient = network,
          .algorithm = "ring",
          .protocol = "simple"};
}

/// One GPU a stage and replica; replicas lie innermost. What is not set costs nothing.
struct HandPlan {
  Scenario scenario;
  StepPlan plan;

  HandPlan(int pipeline, int data, int gpus_per_node) {
    Parallelism& par = scenario.job.parallelism;
    par.pipeline = pipeline;
    par.data = data;
    NodeSpec& node = scenario.node;
    node.gpus = node.nvlink_domain = node.nics = gpus_per_node;
    node.nic_bandwidth = kFree;
    node.gpu.nvlink_bandwidth = kFree;
    scenario.nodes = (pipeline * data + gpus_per_node - 1) / gpus_per_node;
    scenario.fabric.kind = FabricKind::ideal;
    plan.placement = {.tensor = 1,
                      .data = data,
                      .pipeline = pipeline,
                      .gpus_per_node = gpus_per_node,
                      .nvlink_domain = gpus_per_node,
                      .nic_ports = gpus_per_node};
    plan.message = Bytes{1};
    plan.message_cost = plan.local_message_cost = bare_cost(kFree, 1, 1);
    plan.shape.ranks = pipeline;
    plan.stages.resize(static_cast<std::size_t>(pipeline));
    for (int s = 0; s < pipeline; ++s) {
      StagePlan& stage = plan.stages[static_cast<std::size_t>(s)];
      stage.stage = s;
      stage.groups = data_groups(par, Placement{plan.placement}, s);
    }
  }

  ReplayResult run(Recording recording = Recording::none) const {
    std::vector<ReplicaClass> classes;
    for (int d = 0; d < plan.placement.data; ++d) classes.push_back({d, 1, {}});
    const Fabric fabric = own_fabric(scenario, plan);
    FlowNetwork network;
    FabricLinks links{fabric, network};
    const Wiring wiring{scenario, plan, classes, {.links = &links, .nodes = {}}};
    return replay(plan, classes, wiring, recording);
  }
};

struct PassTimes {
  StepTime forward, backward;  ///< of one chunk and micro batch
  StepTime weight{};           ///< gradients of weights: part of `backward`
};

inline StepTime pass_time(const PassTimes& t, Pass pass) {
  switch (pass) {
    case Pass::forward:
      return t.forward;
    case Pass::backward:
      return t.backward;
    case Pass::backward_input:
      return t.backward - t.weight;
    case Pass::backward_weight:
      return t.weight;
  }
  return {};
}

/// A pipeline of free messages: rank s takes times[s] for each pass of each of its chunks.
inline HandPlan pipeline_plan(const Parallelism& cut, int micro_batches,
                              const std::vector<PassTimes>& times) {
  const auto ranks = static_cast<int>(times.size());
  HandPlan hand{ranks, 1, ranks};
  hand.plan.shape = pipeline_shape(cut);
  hand.plan.micro_batches = micro_batches;
  hand.plan.blocking_sends = !cut.order && info(cut.schedule).blocking_sends;
  for (StagePlan& stage : hand.plan.stages) {
    for (const WorkItem& work : rank_order(cut, micro_batches, stage.stage)) {
      ProgramItem item{.work = work,
                       .first_segment = static_cast<std::uint32_t>(stage.segments.size()),
                       .segments = 1};
      connect(hand.plan.shape, stage, item);
      Segment segment;
      segment.compute = pass_time(times[static_cast<std::size_t>(stage.stage)], work.pass);
      stage.segments.push_back(segment);
      stage.items.push_back(item);
    }
  }
  return hand;
}
inline HandPlan pipeline_plan(Schedule schedule, int virtual_stages, int micro_batches,
                              const std::vector<PassTimes>& times) {
  Parallelism cut;
  cut.pipeline = static_cast<int>(times.size());
  cut.virtual_stages = virtual_stages;
  cut.schedule = schedule;
  return pipeline_plan(cut, micro_batches, times);
}

}  // namespace lockstep::test
