// Low-rank adapters beside frozen weights (LoRA, QLoRA).
#include "models/adapters.hpp"

#include <doctest/doctest.h>
#include <string>
#include <vector>

#include "models/checkpoint.hpp"
#include "models/input/input_error.hpp"
#include "models/memory.hpp"
#include "models/workload/flops.hpp"
#include "sim/scenario/read_scenario.hpp"
#include "sim/step/plan.hpp"
#include "sim/step/step.hpp"

namespace lockstep {
namespace {

constexpr std::string_view kTuning = R"({
  "model": "llama2_7b", "cluster": {"node": "dgx_h100", "nodes": 1},
  "parallelism": {"tensor": 1, "data": 8, "sharding": "none"},
  "batch": {"sequences": 32, "micro": 1, "tokens": 2048},
  "lora": {"rank": 16}, "recompute": "none", "stack": "megatron_core"})";

Scenario tuning(const std::vector<std::string>& set = {}) {
  static const PresetStore presets;
  return read_scenario("lora.json", kTuning, presets, {set});
}
double step_seconds(const std::vector<std::string>& set) {
  return simulate_step(tuning(set)).step_s;
}
double posted_bytes(const StagePlan& stage, CollectiveOp op) {
  double sum = 0;
  for (const DataCollective& c : stage.collectives) {
    if (c.op == op) sum += c.payload.base_units();
  }
  return sum;
}

// Llama 2 7B: h = a d = 4096, f = 11008.
constexpr double kLlamaLayers = 32, kLlamaHidden = 4096, kLlamaFfn = 11008, kAdapterRank = 16;
constexpr double kAdapterWeights = kLlamaLayers * kAdapterRank *
                                   ((kLlamaHidden + 3 * kLlamaHidden) + 2 * kLlamaHidden +
                                    (kLlamaHidden + 2 * kLlamaFfn) + (kLlamaFfn + kLlamaHidden));

}  // namespace

TEST_CASE("adapters: two thin matrices beside each product that has one") {
  CHECK(adapter_parameters(tuning().job) == kAdapterWeights);
  CHECK(adapter_parameters(tuning({R"(lora.modules=["qkv"])"}).job) ==
        kLlamaLayers * kAdapterRank * 4 * kLlamaHidden);
  CHECK(adapter_parameters(tuning({"lora.rank=32"}).job) == 2 * kAdapterWeights);
  CHECK(frozen_weight_bytes(tuning({"lora.base=nf4"}).job.adapters) == doctest::Approx(0.515875));
}

TEST_CASE("adapters: useful FLOP of all GPUs are 4 a frozen weight and 6 of an adapter's") {
  TrainingJob whole = tuning().job;
  whole.adapters = {};
  const double tokens = 32 * 2048;
  const double attention =
      step_flops(whole).causal.base_units() / tokens -
      6 * (layer_matrix_parameters(whole.model) * kLlamaLayers + 32000 * kLlamaHidden);
  const double expected =
      4 * (layer_matrix_parameters(whole.model) * kLlamaLayers + 32000 * kLlamaHidden) +
      6 * kAdapterWeights + attention;
  CHECK(step_flops(tuning().job).causal.base_units() / tokens == doctest::Approx(expected));
  for (const int tensor : {1, 2, 8}) {
    CAPTURE(tensor);
    const Scenario s = tuning({"parallelism.tensor=" + std::to_string(tensor),
                               "parallelism.data=" + std::to_string(8 / tensor)});
    const WorkloadContext c{s.job, s.node, s.stack, s.transport, tensor};
    Flops gpu;
    for (const Operation& o : layer_operations(c)) gpu += kLlamaLayers * o.useful;
    for (const Operation& o : head_operations(c)) gpu += o.useful;
    CHECK(32.0 * tensor * gpu / step_flops(s.job).causal == doctest::Approx(1).epsilon(1e-12));
  }
}

TEST_CASE("adapters: their gradients alone are reduced, and all weights are gathered by zero3") {
  const StepPlan plan = plan_step(tuning());
  CHECK(plan.stages[0].parameters == kAdapterWeights);
  CHECK(posted_bytes(plan.stages[0], CollectiveOp::all_reduce) ==
        doctest::Approx(tuning().stack.communication.gradient_bytes * kAdapterWeights));
  const Scenario split = tuning({"parallelism.sharding=zero3", "parallelism.reshard=false"});
  const StagePlan stage = plan_step(split).stages[0];
  constexpr double kMicroBatches = 4;
  const double weights =
      kLlamaLayers * layer_parameters(split.job.model) + 2 * embedding_parameters(split.job.model);
  CHECK(posted_bytes(stage, CollectiveOp::all_gather) ==
        doctest::Approx(kMicroBatches * 2 * weights));
  CHECK(
      posted_bytes(stage, CollectiveOp::reduce_scatter) ==
      doctest::Approx(kMicroBatches * split.stack.communication.gradient_bytes * kAdapterWeights));
}

TEST_CASE("adapters: memory has the weights as stored, and states of the adapters alone") {
  const Scenario s = tuning();
  const MemoryBreakdown m = peak_memory(s.job, s.stack, 0);
  const double all = total_parameters(s.job.model);
  CHECK(m.weights.base_units() == doctest::Approx(2 * (all + kAdapterWeights)).epsilon(1e-5));
  CHECK(m.optimiser.base_units() ==
        doctest::Approx(s.stack.memory.optimiser_state_bytes * kAdapterWeights));
  const Scenario q = tuning({"lora.base=nf4"});
  const double ends = 2 * embedding_parameters(s.job.model);
  CHECK(peak_memory(q.job, q.stack, 0).weights.base_units() ==
        doctest::Approx(0.515875 * (all - ends) + 2 * (ends + kAdapterWeights)).epsilon(1e-5));
  // Adapters on attention alone: the MLP keeps no operand for gradients of its weights.
  const Scenario few = tuning({R"(lora.modules=["qkv"])"});
  CHECK(saved_per_layer(few.job, few.stack) < saved_per_layer(s.job, s.stack));
  CHECK(checkpoint_bytes(s.job).all.base_units() == doctest::Approx(14 * kAdapterWeights));
}

TEST_CASE("adapters: faster than training all weights, slower with more of them or 4-bit weights") {
  constexpr std::string_view kWhole = R"({
    "model": "llama2_7b", "cluster": {"node": "dgx_h100", "nodes": 1},
    "parallelism": {"tensor": 1, "data": 8, "sharding": "none"},
    "batch": {"sequences": 32, "micro": 1, "tokens": 2048},
    "recompute": "none", "stack": "megatron_core"})";
  const PresetStore presets;
  const double whole = simulate_step(read_scenario("all.json", kWhole, presets)).step_s;
  const double few = step_seconds({R"(lora.modules=["qkv"])"});
  const double all = step_seconds({});
  CHECK(few < all);
  CHECK(all < whole);
  CHECK(few > 4.0 / 6 * whole * 0.8);  // no weight's gradient: two of three products are left
  CHECK(step_seconds({"lora.base=nf4"}) > all);
}

TEST_CASE("adapters: what cannot be is refused in one line") {
  const auto complaint = [](const std::vector<std::string>& set) {
    try {
      (void)tuning(set);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string("fine");
  };
  CHECK(complaint({"lora.rank=4", "parallelism.tensor=8", "parallelism.data=1"})
            .find("/lora/rank: found 4") != std::string::npos);
  CHECK(complaint({R"(lora.modules=["q_proj"])"}).find("qkv, projection, mlp_up, mlp_down") !=
        std::string::npos);
  CHECK(complaint({"lora.modules=[]"}).find("/lora/modules") != std::string::npos);
  CHECK(complaint({"lora.base=nf4", "precision=fp8"}).find("/lora/base") != std::string::npos);
  CHECK(complaint({"model=deepseek_v3"}).find("/lora") != std::string::npos);
}

}  // namespace lockstep
