// Stacks that are composed from what they do.
#include "sim/scenario/stack_choice.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <string>
#include <vector>

#include "models/base/input_error.hpp"
#include "models/spec/compose_stack.hpp"
#include "sim/scenario/read_residuals.hpp"
#include "sim/scenario/read_scenario.hpp"
#include "sim/step/step.hpp"
#include "tests/support/near.hpp"
#include "tests/support/presets.hpp"
#include "tests/support/temporary_folder.hpp"

namespace lockstep {
namespace {

Scenario with_stack(const std::string& stack, const std::string& more = "") {
  return read_scenario("job.json",
                       R"({"model": "llama3_8b", "cluster": {"node": "dgx_h100", "nodes": 2},
      "parallelism": {"sharding": "zero3"}, "batch": {"sequences": 16, "tokens": 8192},
      "recompute": "full")" +
                           more + R"(, "stack": )" + stack + "}",
                       test::presets());
}

double step_of(const std::string& stack) { return simulate_step(with_stack(stack)).step_s; }

StackSpec composed(const StackSwitches& switches, const ComposedFor& job = {}) {
  StackSpec out;
  compose(switches, test::presets().operator_costs(), job, out);
  return out;
}

/// Bytes per token and hidden element of a layer with f = 3.5 h and g = a / 4, at streaming rate.
double layer_bytes(const StackSpec& s) {
  constexpr double kFfn = 3.5, kQueriesAndKeys = 1.25;
  const ElementwiseTraffic& e = s.elementwise;
  return e.norm_residual_bytes * (1 + e.norm_backward_ratio) +
         3 * kFfn * e.activation_bytes * (1 + e.activation_backward_ratio) +
         2 * kQueriesAndKeys * e.rotary_bytes;
}

constexpr StackSwitches kAllFused{.fused_norm = true,
                                  .fused_rope = true,
                                  .fused_swiglu = true,
                                  .merged_qkv = true,
                                  .merged_gate_up = true,
                                  .gradient_accumulation_fusion = true,
                                  .kernels = KernelLibrary::library,
                                  .host = HostClass::library};

}  // namespace

TEST_CASE("fp16 training accumulates and reduces fp16 gradients, unless the job says otherwise") {
  struct Said {
    std::string precision, changes;
    double accumulated, reduced;
  };
  for (const Said& one : {Said{"bf16", "", 4, 4}, Said{"fp16", "", 2, 2},
                          Said{"fp16", R"(, "main_gradient_bytes": 4)", 4, 2},
                          Said{"fp16", R"(, "communication": {"gradient_bytes": 4})", 2, 4},
                          Said{"fp16", R"(, "gradients": "fp32", "reduced_format": "fp32")", 4, 4},
                          Said{"fp16", R"(, "gradients": "bf16")", 2, 2}}) {
    CAPTURE(one.precision);
    CAPTURE(one.changes);
    const StackSpec stack = with_stack(R"({"preset": "megatron_core")" + one.changes + "}",
                                       R"(, "precision": ")" + one.precision + "\"")
                                .stack;
    CHECK(stack.main_gradient_bytes == one.accumulated);
    CHECK(stack.communication.gradient_bytes == one.reduced);
  }
}

TEST_CASE("compose: an eager layer has the kernels that were counted, and four times the bytes") {
  // Counted under a dispatch recorder: 38 kernels forward and 73 backward of a Llama layer, here
  // with the 7 that add up gradients of weights.
  const StackSpec eager = composed({});
  CHECK(eager.kernels_forward == 38);
  CHECK(eager.kernels_backward == doctest::Approx(73 + 7).epsilon(0.1));
  const StackSpec fused = composed(kAllFused);
  CHECK(fused.kernels_forward == doctest::Approx(12.5).epsilon(0.1));
  CHECK(fused.kernels_backward == doctest::Approx(20).epsilon(0.1));
  // (145 + 328) / (46 + 64) bytes, and eager chains stream at two thirds of the rate.
  CHECK(layer_bytes(eager) / layer_bytes(fused) > 4);
  CHECK(layer_bytes(eager) / layer_bytes(fused) < 7);
}

TEST_CASE("compose: every feature that fuses saves bytes or kernels") {
  const StackSpec plain = composed({});
  for (bool StackSwitches::* feature :
       {&StackSwitches::fused_norm, &StackSwitches::fused_rope, &StackSwitches::fused_swiglu,
        &StackSwitches::merged_qkv, &StackSwitches::merged_gate_up,
        &StackSwitches::torch_compile}) {
    StackSwitches with;
    with.*feature = true;
    const StackSpec better = composed(with);
    CHECK(layer_bytes(better) < layer_bytes(plain));
    CHECK(better.kernels_forward + better.kernels_backward <=
          plain.kernels_forward + plain.kernels_backward);
  }
  StackSwitches graphs;
  graphs.cuda_graphs = CudaGraphs::full;
  CHECK(composed(graphs).launch_interval == Seconds{});
  CHECK(composed({}, {.host_slowness = 2.5}).launch_interval == 2.5 * composed({}).launch_interval);
}

TEST_CASE("compose: autograd sums biases and joins Q, K and V by kernels, modules do without") {
  const OperatorCosts& costs = test::presets().operator_costs();
  const auto backward = [](const StackSpec& s) {
    return s.elementwise.norm_residual_bytes * s.elementwise.norm_backward_ratio;
  };
  StackSwitches modules = kAllFused, autograd = kAllFused;
  autograd.host = HostClass::eager;
  const double joined = 3 * costs.qkv_split, biases = 5 * costs.bias_gradient;
  for (const bool gated : {true, false}) {
    const ComposedFor job{.gated = gated, .grouped_heads = false};
    CHECK(backward(composed(autograd, job)) - backward(composed(modules, job)) ==
          doctest::Approx(joined + (gated ? 0 : biases)));
  }
  // GELU keeps its own gradient and reads it once more for its bias; a LayerNorm in CUDA is slow.
  const StackSpec gpt = composed(autograd, {.gated = false, .grouped_heads = false});
  CHECK(2 * gpt.elementwise.activation_bytes * gpt.elementwise.activation_backward_ratio ==
        doctest::Approx(2 + 1.33 * 3 + 2));
  CHECK(gpt.elementwise.norm_residual_bytes == doctest::Approx(2 * (0.7 + 1.33 * 4 + 6)));
  modules.host = HostClass::program;  // what a compiler makes streams, and sums as it goes
  const StackSpec compiled = composed(modules, {.gated = false, .grouped_heads = false});
  CHECK(2 * compiled.elementwise.activation_bytes == doctest::Approx(4));
  CHECK(compiled.elementwise.activation_backward_ratio == doctest::Approx(1.5));
}

TEST_CASE("compose: kernels that the SMs limit gain nothing from more bandwidth") {
  const auto step = [](std::string_view gpu) {
    return read_scenario("job.json",
                         fmt::format(R"({{"model": "llama3_8b", "cluster": {{"node":
        {{"preset": "dgx_h100", "gpu": "{}"}}, "nodes": 1}}, "parallelism": {{}},
        "batch": {{"sequences": 8, "tokens": 4096}}, "stack": {{"framework": "pytorch_eager"}}}})",
                                     gpu),
                         test::presets());
  };
  const Scenario a100 = step("a100_sxm4_80gb"), h100 = step("h100_sxm5_80gb"),
                 h200 = step("h200_sxm_141gb"), card = step("rtx4090_24gb");
  const auto seconds = [](const Scenario& s, double bytes) {
    return bytes / (s.node.gpu.memory.efficiency * s.node.gpu.hbm_bandwidth).base_units();
  };
  const auto rotary = [&](const Scenario& s) { return s.stack.elementwise.rotary_bytes; };
  // On A100 as long as 42 bytes by Liger's benchmarks; on H100 and H200 nearly as long (0.97).
  CHECK(rotary(a100) == doctest::Approx(44.4).epsilon(0.06));
  CHECK(seconds(h200, rotary(h200)) / seconds(h100, rotary(h100)) ==
        doctest::Approx(0.98).epsilon(0.01));
  CHECK(rotary(card) == doctest::Approx(2.8 + 32));  // HBM is the slower of the two
}

TEST_CASE("compose: tensor-parallel overlap cuts products into pieces, unless the job says none") {
  const auto overlap = [](const std::string& stack, const std::string& more) {
    const Scenario job =
        read_scenario("job.json",
                      R"({"model": "llama3_8b", "cluster": {"node": "dgx_h100", "nodes": 1},
        "parallelism": {"tensor": 8)" +
                          more + R"(}, "batch": {"sequences": 8, "tokens": 8192},
        "stack": )" + stack +
                          "}",
                      test::presets());
    return job.job.parallelism.tensor_pieces();
  };
  CHECK(overlap(R"({"framework": "nemo"})", "") == 8);
  CHECK(overlap(R"({"framework": "nemo"})", R"(, "tensor_overlap": "none")") == 1);
  CHECK(overlap(R"({"framework": "nemo"})", R"(, "sequence": false)") == 1);
  CHECK(overlap(R"({"framework": "nemo", "tp_overlap": false})", "") == 1);
  // A share that was fitted stays, whatever else changes.
  CHECK(overlap(R"("nemo")", "") == 1);
  CHECK(overlap(R"({"preset": "nemo", "fused_rope": false})", "") == 1);
}

TEST_CASE(
    "shift: what does not change stays, to the last bit, what does changes by its difference") {
  StackSpec fitted = test::presets().stack("torchtitan").spec;
  const StackSpec before = fitted;
  shift(composed(*fitted.switches), composed(*fitted.switches), fitted);
  CHECK(fitted.elementwise.norm_residual_bytes == before.elementwise.norm_residual_bytes);
  CHECK(fitted.elementwise.norm_backward_ratio == before.elementwise.norm_backward_ratio);
  StackSwitches eager = *fitted.switches;
  eager.torch_compile = false;
  const StackSpec from = composed(*before.switches), to = composed(eager);
  shift(from, to, fitted);
  // The bytes that eager kernels add are counted ones: a fitted slowdown is of the others.
  CHECK(before.elementwise.slowdown * layer_bytes(before) + layer_bytes(to) - layer_bytes(from) ==
        doctest::Approx(fitted.elementwise.slowdown * layer_bytes(fitted)).epsilon(0.02));
}

TEST_CASE("a scenario changes what its software does") {
  const double compiled = step_of(R"("torchtitan")");
  CHECK(step_of(R"({"preset": "torchtitan"})") == compiled);
  // What the preset has already is no change.
  CHECK(step_of(R"({"preset": "torchtitan", "torch_compile": true})") == compiled);
  const double eager = step_of(R"({"preset": "torchtitan", "torch_compile": false})");
  CHECK(eager > 1.02 * compiled);
  CHECK(step_of(R"({"preset": "torchtitan", "torch_compile": false, "fused_norm": true})") < eager);
  const Scenario scenario = with_stack(R"({"preset": "torchtitan", "torch_compile": false})");
  CHECK(std::ranges::count(scenario.assumptions,
                           "stack: torchtitan with features changed, by counts of what that "
                           "changes") == 1);
  CHECK(interval_of(scenario, test::presets()).known == SoftwareKnown::composed);
}

TEST_CASE("a framework is composed without what was fitted, and is refused nothing") {
  const Scenario scenario = with_stack(R"({"framework": "pytorch_eager"})");
  CHECK_FALSE(scenario.stack.capabilities.has_value());
  CHECK(scenario.stack.elementwise.slowdown == 1);
  CHECK(simulate_step(scenario).step_s > 0);
  const PredictionInterval interval = interval_of(scenario, test::presets());
  CHECK(interval.known == SoftwareKnown::composed);
  CHECK_THROWS_WITH_AS((void)with_stack(R"({"framework": "torchtitan", "preset": "torchtitan"})"),
                       doctest::Contains("either \"framework\" or \"preset\""), InputError);
  CHECK_THROWS_WITH_AS((void)with_stack(R"({"framework": "torchtitan", "fused_rop": true})"),
                       doctest::Contains("Did you mean \"fused_rope\"?"), InputError);
  CHECK_THROWS_WITH_AS((void)with_stack(R"({"preset": "torchtitan", "cuda_graphs": "all"})"),
                       doctest::Contains("none, layer, full"), InputError);
}

TEST_CASE("stacks that nobody measured are composed, say so, and can be run") {
  const PresetStore& presets = test::presets();
  int composed_stacks = 0;
  for (const std::string& name : presets.names("stacks")) {
    const StackSpec& stack = presets.stack(name).spec;
    CAPTURE(name);
    // All that ship say what they do.
    CHECK(stack.switches.has_value());
    if (!stack.composed) continue;
    ++composed_stacks;
    CHECK(stack.about.ends_with("Composed, no published run of it."));
    CHECK(stack.elementwise.slowdown == 1);
    CHECK(stack.communication.sm_share == presets.operator_costs().sm_share);
  }
  CHECK(composed_stacks >= 12);
  for (const char* alias :
       {"HF-Trainer", "accelerate", "hf_deepspeed", "LLaMA-Factory", "axolotl", "TRL", "torchtune",
        "Colossal-AI", "composer", "llm.c", "nanoGPT", "Primus", "Megatron-LM"}) {
    CAPTURE(alias);
    CHECK(presets.has("stacks", alias));
  }
  CHECK(step_of(R"("hf_trainer")") > step_of(R"("axolotl")"));
}

TEST_CASE("slower processors hold up eager software, and compiled programs less") {
  const auto kernels = [](const char* node, const char* stack) {
    const Scenario s =
        read_scenario("job.json",
                      std::string(R"({"model": "llama3_8b", "cluster": {"node": ")") + node +
                          R"(", "nodes": 4}, "batch": {"sequences": 288, "tokens": 512},)" +
                          R"("stack": {"framework": ")" + stack + R"("}})",
                      test::presets());
    return s.stack.launch_interval;
  };
  CHECK(kernels("gb200_nvl72", "pytorch_eager") / kernels("dgx_b200", "pytorch_eager") ==
        doctest::Approx(2.5));
  CHECK(kernels("dgx_b200", "maxtext") < kernels("dgx_b200", "pytorch_eager"));
}

TEST_CASE(
    "slower processors of a scenario hold up every stack once, as they differ from the preset") {
  const auto stack_on = [](const std::string& node, const std::string& stack,
                           const std::vector<std::string>& sets) {
    return read_scenario("job.json",
                         R"({"model": "llama3_8b", "cluster": {"node": ")" + node +
                             R"(", "nodes": 4}, "batch": {"sequences": 288, "tokens": 512},
                             "stack": ")" +
                             stack + R"("})",
                         test::presets(), {.set = sets})
        .stack;
  };
  const std::string slowness = "cluster.node.host.launch_slowness=";
  for (const char* name : {"neutral", "megatron_core", "pytorch_eager"}) {
    CAPTURE(name);
    const StackSpec own = stack_on("dgx_h100", name, {});
    const StackSpec slow = stack_on("dgx_h100", name, {slowness + "3"});
    REQUIRE(own.launch_interval > Seconds{});
    CHECK(slow.launch_interval / own.launch_interval == doctest::Approx(3));
    CHECK(slow.expert_host_layer.base_units() ==
          doctest::Approx(3 * own.expert_host_layer.base_units()));
    CHECK(slow.expert_host_expert.base_units() ==
          doctest::Approx(3 * own.expert_host_expert.base_units()));
    // A Grace, which the preset says takes 2.5 times as long.
    const StackSpec grace = stack_on("gb200_nvl72", name, {});
    CHECK(stack_on("gb200_nvl72", name, {slowness + "2.5"}).launch_interval ==
          grace.launch_interval);
    CHECK(stack_on("gb200_nvl72", name, {slowness + "5"}).launch_interval / grace.launch_interval ==
          doctest::Approx(2));
    // What the scenario says of the stack itself is said of its processors.
    CHECK(stack_on("dgx_h100", name, {slowness + "3", "stack.launch_interval=9 us"})
              .launch_interval == microseconds(9));
  }
  const auto fitted = [&](const std::string& node) {
    return stack_on(node, "megatron_core", {}).launch_interval;
  };
  CHECK(fitted("gb200_nvl72") == fitted("dgx_h100"));
}

TEST_CASE("the stack that stands in: attention is unfused where the card has nothing else") {
  const std::string job = R"({"model": "llama3_8b", "cluster": {"node": "dgx_v100", "nodes": 2},
      "parallelism": {"sharding": "zero3"}, "batch": {"sequences": 16, "tokens": 8192})";
  const Scenario open = read_scenario("job.json", job + "}", test::presets());
  CHECK(open.stack.attention == AttentionKernel::unfused);
  CHECK(
      std::ranges::count(open.assumptions,
                         "attention: unfused instead of cudnn, as v100_sxm2_32gb has no constants "
                         "for fused kernels") == 1);
  CHECK_THROWS_WITH_AS(
      read_scenario("job.json", job + R"(, "stack": {"attention": "cudnn"}})", test::presets()),
      "job.json#/stack/attention: found \"cudnn\"; allowed: unfused (v100_sxm2_32gb has no "
      "constants for fused kernels)",
      InputError);
}

TEST_CASE("a stack of one's own on a framework: features change it, and the rest stays") {
  const test::TemporaryFolder folder;
  const std::string text = R"({"framework": "pytorch_eager", "features": {"fused_norm": true},
    "launch_interval": "20 us"})";
  const StackSpec& own = test::presets().stack(folder.write("own.json", text)).spec;
  const StackSpec& base = test::presets().stack("pytorch_eager").spec;
  CHECK(own.composed);
  CHECK(own.switches->fused_norm);
  // 24 bytes that were traced, not the 16 that are counted.
  CHECK(own.optimiser_bytes == base.optimiser_bytes);
  CHECK(own.elementwise.norm_residual_bytes < base.elementwise.norm_residual_bytes);
  CHECK(own.launch_interval.base_units() == test::near(20e-6));
  CHECK(own.capabilities.has_value());
  // What is laid over software that nobody named is refused nothing.
  CHECK_FALSE(test::presets()
                  .stack(folder.write("any.json", R"({"framework": "neutral"})"))
                  .spec.capabilities.has_value());
}

}  // namespace lockstep
