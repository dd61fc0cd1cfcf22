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
    plan.stages.resize(static_cast<std::size_t>(pipeline));
    for (int s = 0; s < pipeline; ++s) {
      StagePlan& stage = plan.stages[static_cast<std::size_t>(s)];
      stage.stage = s;
      stage.groups = data_groups(par, Placement{plan.placement}, s);
    }
  }

  ReplayResult run(bool record = false) const {
    std::vector<ReplicaClass> classes;
    for (int d = 0; d < plan.placement.data; ++d) classes.push_back({d, 1, {}});
    const Fabric fabric = own_fabric(scenario, plan);
    FlowNetwork network;
    FabricLinks links{fabric, network};
    const Wiring wiring{scenario, plan, classes, {.links = &links, .nodes = {}}};
    return replay(plan, classes, wiring, record);
  }
};

struct PassTimes {
  StepTime forward, backward;  ///< of one chunk and micro batch
};

/// A pipeline of free messages: rank s takes times[s] for each pass of each of its chunks.
inline HandPlan pipeline_plan(Schedule schedule, int chunks, int micro_batches,
                              const std::vector<PassTimes>& times) {
  const auto ranks = static_cast<int>(times.size());
  HandPlan hand{ranks, 1, ranks};
  hand.plan.chunks = chunks;
  hand.plan.micro_batches = micro_batches;
  hand.plan.blocking_sends = schedule != Schedule::interleaved;
  for (StagePlan& stage : hand.plan.stages) {
    const int rank = stage.stage;
    for (const WorkItem& work : stage_order(schedule, {ranks, chunks, micro_batches, rank})) {
      const bool forward = work.pass == Pass::forward;
      const bool first = rank == 0 && work.chunk == 0;
      const bool last = rank == ranks - 1 && work.chunk == chunks - 1;
      const PassTimes& t = times[static_cast<std::size_t>(rank)];
      ProgramItem item{.work = work,
                       .first_segment = static_cast<std::uint32_t>(stage.segments.size()),
                       .segments = 1};
      item.needs_message = ranks > 1 && !(forward ? first : last);
      item.sends_message = ranks > 1 && !(forward ? last : first);
      Segment segment;
      segment.compute = forward ? t.forward : t.backward;
      stage.segments.push_back(segment);
      stage.items.push_back(item);
      if (!item.sends_message) continue;
      int to = work.chunk;
      if (forward && rank == ranks - 1) ++to;
      if (!forward && rank == 0) --to;
      stage.message_chunks[forward ? 0 : 1].push_back(static_cast<std::uint16_t>(to));
    }
  }
  return hand;
}

}  // namespace lockstep::test
