// Low-rank adapters beside frozen weights (LoRA, QLoRA).
#include "models/spec/adapters.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <string>
#include <vector>

#include "models/base/input_error.hpp"
#include "models/checkpoint.hpp"
#include "models/layer/flops.hpp"
#include "models/layer/memory.hpp"
#include "sim/scenario/read_scenario.hpp"
#include "sim/step/plan.hpp"
#include "sim/step/step.hpp"

namespace lockstep {
namespace {

constexpr std::string_view kTuning = R"({
  "model": "llama2_7b", "cluster": {"node": "dgx_h100", "nodes": 1},
  "parallelism": {"tensor": 1, "data": 8, "sharding": "none"},
  "batch": {"sequences": 32, "micro": 1, "tokens": 2048},
  "lora": {"rank": 16}, "recompute": "none",
  "stack": {"preset": "megatron_core", "allow": ["lora.bf16", "lora.nf4"]}})";

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
    "recompute": "none",
  "stack": {"preset": "megatron_core", "allow": ["lora.bf16", "lora.nf4"]}})";
  const PresetStore presets;
  const double whole = simulate_step(read_scenario("all.json", kWhole, presets)).step_s;
  const double few = step_seconds({R"(lora.modules=["qkv"])"});
  const double all = step_seconds({});
  CHECK(few < all);
  CHECK(all < whole);
  CHECK(few > 4.0 / 6 * whole * 0.8);  // no weight's gradient: two of three products are left
  CHECK(step_seconds({"lora.base=nf4"}) > all);
}

TEST_CASE("adapters: of experts and of latent attention, by hand and over all GPUs") {
  // h 1024; queries by 96 and keys and values by 64 + 32 columns; 8 experts of width 512, two a
  // token.
  constexpr std::string_view kExperts = R"({
    "model": {"layers": 2, "hidden": 1024, "heads": 8, "ffn": 2048, "vocabulary": 32000,
      "gated": true, "experts": {"count": 8, "per_token": 2, "ffn": 512, "shared_ffn": 768},
      "latent_attention": {"query_rank": 96, "key_value_rank": 64, "nope_dim": 64, "rope_dim": 32,
                           "value_dim": 48}},
    "cluster": {"node": "dgx_h100", "nodes": 1},
    "parallelism": {"tensor": 2, "data": 4, "expert": 4, "expert_tensor": 1, "sharding": "none"},
    "batch": {"sequences": 8, "tokens": 2048}, "lora": {"rank": 16}, "recompute": "none",
    "stack": {"preset": "megatron_core", "allow": ["lora.bf16", "lora.nf4"]}})";
  const PresetStore presets;
  const auto job_of = [&](const std::vector<std::string>& set) {
    return read_scenario("experts.json", kExperts, presets, {set});
  };
  const auto weights = [&](const std::string& module, const std::string& experts) {
    return adapter_parameters(
        job_of({"lora.modules=[\"" + module + "\"]", "lora.experts=" + experts}).job);
  };
  constexpr double kEach = 2 * 16;  // layers times rank
  CHECK(weights("qkv", "shared") == kEach * (2 * 1024 + 96 + 64 + 32));
  CHECK(weights("query_up", "shared") == kEach * (96 + 8 * 96));
  CHECK(weights("key_value_up", "shared") == kEach * (64 + 8 * (64 + 48)));
  CHECK(weights("projection", "shared") == kEach * (8 * 48 + 1024));
  CHECK(weights("mlp_up", "shared") == kEach * (1024 + 2 * 768));
  CHECK(weights("expert_up", "own") == kEach * 8 * (1024 + 2 * 512));
  CHECK(weights("expert_up", "shared") == kEach * 4 * (1024 + 2 * 512));  // one on each rank
  CHECK(weights("expert_down", "own") == kEach * 8 * (512 + 1024));

  for (const std::vector<std::string>& set :
       std::vector<std::vector<std::string>>{{},
                                             {"lora.experts=own"},
                                             {"parallelism.expert_tensor=2"},
                                             {"routing.zipf=1", "routing.capacity_factor=1"}}) {
    const Scenario s = job_of(set);
    const WorkloadContext c{s.job, s.node, s.stack, s.transport, 2, 1, 4};
    Flops gpu;
    for (const Operation& o : layer_operations(c, s.job.kind(0))) gpu += 2.0 * o.useful;
    for (const Operation& o : head_operations(c)) gpu += o.useful;
    CHECK(8.0 * 2 * gpu / step_flops(s.job).causal == doctest::Approx(1).epsilon(1e-12));
  }
  const auto memory = [&](const std::vector<std::string>& set) {
    const Scenario s = job_of(set);
    return peak_memory(s.job, s.stack, 0);
  };
  CHECK(memory({"lora.experts=own"}).optimiser > memory({}).optimiser);
  CHECK(memory({}).activations > memory({R"(lora.modules=["qkv"])"}).activations);
  CHECK(simulate_step(job_of({"lora.experts=own"})).step_s > simulate_step(job_of({})).step_s);
}

namespace {

constexpr std::string_view kPartly = R"({
  "model": {"preset": "llama2_7b", "layers": 8}, "cluster": {"node": "dgx_h100", "nodes": 1},
  "parallelism": {"tensor": 1, "data": 8, "sharding": "none"},
  "batch": {"sequences": 32, "micro": 1, "tokens": 2048}, "recompute": "none",
  "stack": {"preset": "megatron_core", "allow": ["lora.bf16", "lora.nf4",
    "schedules.gpipe", "schedules.zb_h1"]}})";

Scenario partly(const std::vector<std::string>& set) {
  static const PresetStore presets;
  return read_scenario("frozen.json", kPartly, presets, {set});
}

}  // namespace

TEST_CASE("frozen parts: trained weights alone have gradients, states and exchanges") {
  const Scenario all = partly({});
  const TransformerShape& m = all.job.model;
  const double layer = layer_parameters(m), table = embedding_parameters(m);
  const Scenario s = partly({"frozen.embedding=true", "frozen.layers=5"});
  const double left = 3 * layer + table;  // output projection
  CHECK(trained_parameters(s.job) == doctest::Approx(left).epsilon(1e-5));
  CHECK(trained_parameters(all.job) == total_parameters(m));
  CHECK(checkpoint_bytes(s.job).all.base_units() == 14 * trained_parameters(s.job));
  const StagePlan stage = plan_step(s).stages[0];
  CHECK(stage.parameters == doctest::Approx(left));
  CHECK(posted_bytes(stage, CollectiveOp::all_reduce) ==
        doctest::Approx(s.stack.communication.gradient_bytes * left));
  const MemoryBreakdown of_all = peak_memory(all.job, all.stack, 0);
  const MemoryBreakdown of_part = peak_memory(s.job, s.stack, 0);
  CHECK(of_part.weights.base_units() == doctest::Approx(of_all.weights.base_units()));
  CHECK(of_part.optimiser / of_all.optimiser == doctest::Approx(left / (8 * layer + 2 * table)));
  CHECK(of_part.gradients / of_all.gradients == doctest::Approx(left / (8 * layer + 2 * table)));
  CHECK(of_part.activations / of_all.activations == doctest::Approx(3.0 / 8));
}

TEST_CASE("frozen parts: the backward pass ends at the first trained layer, over all GPUs") {
  const auto forward_only = [](const std::vector<std::string>& set) {
    int count = 0;
    const Scenario s = partly(set);
    for (int i = 0; i < 8; ++i) count += s.job.kind(i).gradients == Gradients::none ? 1 : 0;
    return count;
  };
  CHECK(forward_only({"frozen.embedding=true", "frozen.layers=5"}) == 5);
  CHECK(forward_only({"frozen.layers=5"}) == 0);  // to the embedding, through all of them
  CHECK(forward_only({"frozen.embedding=true", "frozen.output=true"}) == 0);
  for (const std::vector<std::string>& set : std::vector<std::vector<std::string>>{
           {"frozen.embedding=true", "frozen.layers=5"},
           {"frozen.layers=5"},
           {"frozen.embedding=true", "frozen.layers=8"},
           {"frozen.output=true"},
           {"frozen.embedding=true", "frozen.layers=2", "frozen.output=true"}}) {
    const Scenario s = partly(set);
    const WorkloadContext c{s.job, s.node, s.stack, s.transport, 1};
    Flops gpu;
    for (const Operation& o : head_operations(c)) gpu += o.useful;
    for (int i = 0; i < 8; ++i) {
      for (const Operation& o : layer_operations(c, s.job.kind(i))) gpu += o.useful;
    }
    CHECK(32.0 * gpu / step_flops(s.job).causal == doctest::Approx(1).epsilon(1e-12));
  }
}

TEST_CASE("frozen parts: a step is the shorter the more of it is frozen, down to the head alone") {
  const auto seconds = [](std::vector<std::string> set) {
    return simulate_step(partly(set)).step_s;
  };
  double before = seconds({});
  for (const char* layers : {"0", "2", "5", "8"}) {
    const double now = seconds({"frozen.embedding=true", std::string("frozen.layers=") + layers});
    CHECK(now < before);
    before = now;
  }
  // Frozen layers behind a trained embedding still make the gradients of their inputs.
  CHECK(seconds({"frozen.layers=5"}) > seconds({"frozen.embedding=true", "frozen.layers=5"}));
  CHECK(seconds({"frozen.layers=5"}) < seconds({}));
  // On four stages the first two go forward alone, and get no gradients from the third.
  const std::vector<std::string> stages{"parallelism.pipeline=4", "parallelism.data=2",
                                        "parallelism.virtual_stages=1", "frozen.embedding=true",
                                        "frozen.layers=4"};
  const StepPlan plan = plan_step(partly(stages));
  for (const StagePlan& stage : plan.stages) {
    CAPTURE(stage.stage);
    CHECK((stage.backward > StepTime{}) == (stage.stage >= 2));
    CHECK((stage.parameters > 0) == (stage.stage >= 2));
    for (const ProgramItem& item : stage.items) {
      if (is_forward(item.work.pass)) continue;
      CHECK(item.needs_message == (stage.stage == 2));
      CHECK(item.sends_message == (stage.stage == 3));
    }
  }
  // With zero-bubble schedules the last stage has the last word either way.
  for (const char* schedule : {"1f1b", "gpipe", "zb_h1"}) {
    CAPTURE(schedule);
    const std::string by = std::string("parallelism.schedule=") + schedule;
    const double whole = seconds({stages[0], stages[1], stages[2], by});
    std::vector<std::string> set = stages;
    set.push_back(by);
    CHECK(seconds(set) <= whole);
    if (by.find("zb") == std::string::npos) CHECK(seconds(set) < whole);
  }
  for (const char* sharding : {"zero1", "zero3"}) {
    const std::string split = std::string("parallelism.sharding=") + sharding;
    CHECK(seconds({split, stages[3], stages[4]}) < seconds({split}));
  }
}

TEST_CASE("frozen parts: what cannot be is refused in one line") {
  const auto complaint = [](const std::vector<std::string>& set) {
    try {
      (void)partly(set);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string("fine");
  };
  CHECK(complaint({"frozen.layers=9"}).find("/frozen/layers: found 9") != std::string::npos);
  CHECK(complaint({"frozen.embedding=true", "frozen.output=true", "frozen.layers=8"})
            .find("something has to be trained") != std::string::npos);
  CHECK(complaint({"frozen.embedding=true", "model.tied=true"}).find("share their weights") !=
        std::string::npos);
  CHECK(complaint({"frozen.embedding=true", "model.predicted_tokens=1"})
            .find("/model/predicted_tokens") != std::string::npos);
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
  CHECK(complaint({R"(model={"preset": "llama2_7b", "predicted_tokens": 1})"})
            .find("/model/predicted_tokens") != std::string::npos);
  CHECK(complaint({R"(lora.modules=["expert_up"])"})
            .find("allowed: qkv, projection, mlp_up, mlp_down (products of llama2_7b)") !=
        std::string::npos);
  CHECK(complaint({"frozen.layers=1"}).find("/frozen: found") != std::string::npos);
}

TEST_CASE("adapters, frozen parts: prediction modules that nobody asked for are left out aloud") {
  const auto said = [](const Scenario& scenario) {
    const std::string words =
        "model: its modules that predict further tokens are left out, beside ";
    const auto line = std::ranges::find_if(
        scenario.assumptions, [&](const std::string& one) { return one.starts_with(words); });
    return line == scenario.assumptions.end() ? std::string() : line->substr(words.size());
  };
  const Scenario tuned = tuning({"model=mimo_7b"}), part = partly({"model=mimo_7b"});
  CHECK(tuned.job.model.predicted_tokens == 0);
  CHECK(said(tuned) == "adapters");
  CHECK(part.job.model.predicted_tokens == 1);
  CHECK(said(part).empty());
  const Scenario frozen = partly({"model=mimo_7b", "frozen.embedding=true"});
  CHECK(frozen.job.model.predicted_tokens == 0);
  CHECK(said(frozen) == "frozen parts");
  CHECK(said(tuning()).empty());
}

}  // namespace lockstep
