// Weights that are gathered layer by layer (ZeRO-3, FSDP), whole or in groups (HSDP).
#include <algorithm>
#include <doctest/doctest.h>
#include <string>
#include <vector>

#include "sim/scenario/read_scenario.hpp"
#include "sim/step/plan.hpp"
#include "sim/step/step.hpp"

namespace lockstep {
namespace {

constexpr std::string_view kJob = R"({
  "model": "llama3_8b", "cluster": {"node": "dgx_h100", "nodes": 2},
  "parallelism": {"tensor": 1, "data": 16, "sharding": "zero3"},
  "batch": {"sequences": 64, "micro": 1, "tokens": 4096},
  "recompute": "none", "stack": "torchtitan"})";

Scenario scenario(const std::vector<std::string>& set = {}) {
  static const PresetStore presets;
  return read_scenario("fsdp.json", kJob, presets, {set});
}

double count(const StagePlan& stage, CollectiveOp op, DataGroupKind group) {
  return static_cast<double>(std::ranges::count_if(stage.collectives, [&](const DataCollective& c) {
    return c.op == op && stage.channels[c.channel].group == group;
  }));
}

double bytes(const StagePlan& stage, CollectiveOp op) {
  double sum = 0;
  for (const DataCollective& c : stage.collectives) {
    if (c.op == op) sum += c.payload.base_units();
  }
  return sum;
}

}  // namespace

TEST_CASE("zero3: every micro batch gathers each layer twice and the rest once, and scatters all") {
  constexpr double kMicroBatches = 4, kLayers = 32;
  const StepPlan plan = plan_step(scenario());
  const StagePlan& stage = plan.stages[0];
  CHECK(count(stage, CollectiveOp::all_gather, DataGroupKind::shard) ==
        kMicroBatches * (2 * kLayers + 2));
  CHECK(count(stage, CollectiveOp::reduce_scatter, DataGroupKind::shard) ==
        kMicroBatches * (kLayers + 2));
  CHECK(count(stage, CollectiveOp::all_reduce, DataGroupKind::copies) == 0);
  const StepPlan kept = plan_step(scenario({"parallelism.reshard=false"}));
  CHECK(count(kept.stages[0], CollectiveOp::all_gather, DataGroupKind::shard) ==
        kMicroBatches * (kLayers + 2));
  // 2 bytes a weight gathered; fp32 gradients scattered.
  CHECK(bytes(kept.stages[0], CollectiveOp::all_gather) ==
        doctest::Approx(kMicroBatches * 2 * stage.parameters));
  CHECK(bytes(stage, CollectiveOp::reduce_scatter) ==
        doctest::Approx(kMicroBatches * 4 * stage.parameters));
}

TEST_CASE("zero2: every micro batch reduces what zero1 reduces once") {
  constexpr double kMicroBatches = 4;
  const auto split = [](const char* sharding, const char* overlap) {
    return scenario({R"(stack={"preset": "deepspeed", "communication": {"sm_share": 0}})",
                     std::string("parallelism.sharding=") + sharding,
                     std::string("stack.communication.overlap_gradients=") + overlap});
  };
  for (const char* const overlap : {"true", "false"}) {
    CAPTURE(overlap);
    const StagePlan zero1 = plan_step(split("zero1", overlap)).stages[0];
    const StagePlan zero2 = plan_step(split("zero2", overlap)).stages[0];
    CHECK(bytes(zero2, CollectiveOp::reduce_scatter) ==
          doctest::Approx(kMicroBatches * bytes(zero1, CollectiveOp::reduce_scatter)));
    CHECK(bytes(zero2, CollectiveOp::all_gather) == bytes(zero1, CollectiveOp::all_gather));
  }
  // Without overlap each of them is waited for.
  const StagePlan zero1 = plan_step(split("zero1", "false")).stages[0];
  REQUIRE(count(zero1, CollectiveOp::reduce_scatter, DataGroupKind::replicas) == 1);
  const DataChannel& reduction = zero1.channels[zero1.collectives.front().channel];
  const double alone =
      (reduction.cost.latency + reduction.payload / reduction.cost.payload_rate).base_units();
  const double one = simulate_step(split("zero1", "false")).step_s;
  const double two = simulate_step(split("zero2", "false")).step_s;
  CHECK(two - one == doctest::Approx((kMicroBatches - 1) * alone).epsilon(1e-3));
  CHECK(simulate_step(split("zero2", "true")).step_s < two);
  CHECK(simulate_step(split("zero2", "true")).step_s >=
        simulate_step(split("zero1", "true")).step_s);
}

TEST_CASE("zero3: copies in groups gather inside them and reduce across them") {
  const StepPlan plan = plan_step(scenario({"parallelism.shard_group=8"}));
  const StagePlan& stage = plan.stages[0];
  CHECK(stage.groups[static_cast<std::size_t>(DataGroupKind::shard)].ranks == 8);
  CHECK_FALSE(stage.groups[static_cast<std::size_t>(DataGroupKind::shard)].crosses_domains);
  const DataGroup& copies = stage.groups[static_cast<std::size_t>(DataGroupKind::copies)];
  CHECK(copies.ranks == 2);
  CHECK(copies.stride == 8);
  CHECK(copies.next(3) == 11);
  CHECK(copies.next(11) == 3);
  CHECK(bytes(stage, CollectiveOp::all_reduce) * 8 ==
        doctest::Approx(bytes(stage, CollectiveOp::reduce_scatter)));
  // A whole group is the same as none.
  CHECK(simulate_step(scenario({"parallelism.shard_group=16"})).step_s ==
        simulate_step(scenario()).step_s);
}

TEST_CASE("zero3: hides behind long passes, and is waited for without overlap") {
  const auto at = [](const StepReport& report, Bucket bucket) {
    return report.seconds[static_cast<std::size_t>(bucket)];
  };
  const std::vector<std::string> lasting{"batch.tokens=131072", "batch.sequences=16",
                                         "stack.preset=torchtitan",
                                         "stack.communication.sm_share=0"};
  const StepReport hidden = simulate_step(scenario(lasting));
  CHECK(at(hidden, Bucket::data_exposed) < 0.01 * hidden.step_s);
  std::vector<std::string> without = lasting;
  without.emplace_back("parallelism.sharding=none");
  CHECK(at(hidden, Bucket::model_flops) ==
        doctest::Approx(at(simulate_step(scenario(without)), Bucket::model_flops)));

  const Scenario bare =
      scenario({"stack.preset=torchtitan", "stack.communication.overlap_gradients=false",
                "stack.communication.overlap_parameters=false", "stack.communication.sm_share=0"});
  const StepReport serial = simulate_step(bare);
  const StagePlan stage = plan_step(bare).stages[0];
  double alone = 0;
  for (const DataCollective& c : stage.collectives) {
    const CollectiveCost& cost = stage.channels[c.channel].cost;
    alone += (cost.latency + c.payload / cost.payload_rate).base_units();
  }
  CHECK(at(serial, Bucket::data_exposed) == doctest::Approx(alone).epsilon(0.01));
  CHECK(serial.step_s > simulate_step(scenario()).step_s);
}

TEST_CASE("zero3: gathering further ahead never takes longer") {
  double before = simulate_step(scenario({"parallelism.prefetch=0"})).step_s;
  for (const char* prefetch : {"1", "2", "4"}) {
    const double now =
        simulate_step(scenario({std::string("parallelism.prefetch=") + prefetch})).step_s;
    CHECK(now <= before * (1 + 1e-9));
    before = now;
  }
}

TEST_CASE("experts: their gradients are reduced among their own replicas") {
  const Scenario s = scenario({R"(model.experts={"count":8,"per_token":2,"ffn":4096})",
                               "parallelism.sharding=zero1", "parallelism.expert=8",
                               R"(stack={"preset":"torchtitan","allow":["sharding.zero1"]})"});
  const StepPlan plan = plan_step(s);
  const StagePlan& stage = plan.stages[0];
  CHECK(stage.groups[static_cast<std::size_t>(DataGroupKind::experts)].ranks == 2);
  double experts = 0;
  for (const DataCollective& c : stage.collectives) {
    const bool reduces = c.op == CollectiveOp::reduce_scatter;
    if (reduces && stage.channels[c.channel].group == DataGroupKind::experts) {
      experts += c.payload.base_units();
    }
  }
  const double weights = 32 * expert_parameters(s.job.model) / 8;
  CHECK(experts == doctest::Approx(s.stack.communication.gradient_bytes * weights));
}

TEST_CASE("context: ranks that share a sequence reduce each other's gradients") {
  const Scenario s = scenario({"parallelism.context=2", "parallelism.data=8",
                               "parallelism.sharding=zero1", "batch.tokens=8192",
                               R"(stack={"preset":"torchtitan","allow":["sharding.zero1"]})"});
  const StepPlan plan = plan_step(s);
  const DataGroup& replicas = plan.stages[0].groups[0];
  CHECK(replicas.ranks == 16);
  CHECK(replicas.replicas == 8);
  CHECK(replicas.per_domain == 8);
  // The same tokens on the same GPUs take about the same time, but for attention over more keys.
  const StepReport wide = simulate_step(s);
  CHECK(wide.tokens_per_step == 64 * 8192);
  double sum = 0;
  for (const double seconds : wide.seconds) sum += seconds;
  CHECK(sum == doctest::Approx(wide.step_s));
}

}  // namespace lockstep
