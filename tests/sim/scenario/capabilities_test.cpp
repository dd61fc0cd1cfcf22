// What stacks declare that they can run, and what scenarios may ask of them.
#include "sim/scenario/capabilities.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/input_error.hpp"
#include "sim/scenario/read_residuals.hpp"
#include "sim/scenario/read_scenario.hpp"
#include "tests/support/presets.hpp"

namespace lockstep {
namespace {

Scenario job_with(const std::string& stack, const std::string& parallelism,
                  const std::string& more = {}) {
  return read_scenario("job.json",
                       R"({"model": "llama3_8b", "cluster": {"node": "dgx_h100", "nodes": 4},
                           "batch": {"sequences": 256, "tokens": 4096}, "stack": )" +
                           stack + R"(, "parallelism": )" + parallelism + more + "}",
                       test::presets());
}

/// The whole line of the error; empty: none.
std::string refusal(const std::string& stack, const std::string& parallelism,
                    const std::string& more = {}) {
  try {
    (void)job_with(stack, parallelism, more);
    return {};
  } catch (const InputError& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("every stack that ships declares what it can run, and can run something") {
  for (const std::string& name : test::presets().names("stacks")) {
    CAPTURE(name);
    const StackSpec& stack = test::presets().stack(name).spec;
    REQUIRE(stack.capabilities.has_value());
    for (const CapabilityList list :
         {CapabilityList::sharding, CapabilityList::recompute, CapabilityList::precision}) {
      CHECK(stack.capabilities->any(list));
    }
    // What a scenario leaves open has to be possible.
    CHECK(stack.capabilities->has(capability(CapabilityList::sharding, Sharding::none)));
    CHECK(stack.capabilities->has(capability(CapabilityList::recompute, Recompute::none)));
    const CommunicationPolicy& policy = stack.communication;
    if (stack.capabilities->any(CapabilityList::context_exchange)) {
      CHECK(stack.capabilities->has(
          capability(CapabilityList::context_exchange, policy.context_exchange)));
    }
    if (stack.capabilities->any(CapabilityList::expert_dispatch)) {
      CHECK(stack.capabilities->has(
          capability(CapabilityList::expert_dispatch, policy.expert_dispatch)));
    }
    const bool pipelines = stack.capabilities->any(CapabilityList::schedules);
    CHECK(pipelines == stack.capabilities->any(CapabilityList::pipeline_sharding));
    const bool selective =
        stack.capabilities->has(capability(CapabilityList::recompute, Recompute::selective));
    CHECK(selective == stack.capabilities->any(CapabilityList::recompute_modules));
  }
}

TEST_CASE("what a stack cannot run is refused where it is asked for, with one that can") {
  CHECK(refusal(R"("megatron_lm_2021")", R"({"sharding": "zero3"})") ==
        "job.json#/parallelism/sharding: found \"zero3\"; allowed: none, as megatron_lm_2021 can "
        "do no more; the nearest stack that can run it is megatron_deepspeed; or \"stack\": "
        "{\"allow\": [\"sharding.zero3\"]}");
  CHECK(refusal(R"("torchtitan")", R"({"pipeline": 4, "schedule": "zb_v"})") ==
        "job.json#/parallelism/schedule: found \"zb_v\"; allowed: gpipe, 1f1b, interleaved, "
        "breadth_first, file, as torchtitan can do no more; the nearest stack that can run it is "
        "torchtitan_eager; or \"stack\": {\"allow\": [\"schedules.zb_v\"]}");
  struct Case {
    const char *stack, *parallelism, *more, *pointer;
  };
  for (const Case& c : std::vector<Case>{
           {"deepspeed", R"({"pipeline": 2})", "", "/parallelism/pipeline"},
           {"deepspeed", R"({"tensor": 2})", "", "/parallelism/tensor"},
           {"megatron_deepspeed", R"({"pipeline": 2, "sharding": "zero2"})",
            R"(, "recompute": "full")", "/parallelism/sharding"},
           {"megatron_core", R"({"tensor": 8, "pipeline": 4, "schedule": "dualpipe"})", "",
            "/parallelism/schedule"},
           {"megatron_lm_2022", R"({"context": 2})", "", "/parallelism/context"},
           {"megatron_lm_2022", "{}", R"(, "precision": "fp8")", "/precision"},
           {"megatron_lm_2021", "{}", R"(, "recompute": "selective")", "/recompute"},
           {"megatron_lm_2022", "{}", R"(, "recompute": {"modules": ["mlp"]})", "/recompute"},
           {"megatron_lm_2022", "{}", R"(, "lora": {"rank": 8, "modules": ["qkv"]})", "/lora"},
           {"nanotron", "{}", R"(, "offload": {"optimiser": 1})", "/offload/optimiser"},
           {"megatron_lm_2022", R"({"pipeline": 4, "virtual_stages": 3})", "",
            "/parallelism/virtual_stages"},
       }) {
    CAPTURE(c.stack);
    CAPTURE(c.parallelism);
    CAPTURE(c.more);
    const std::string text = refusal('"' + std::string(c.stack) + '"', c.parallelism, c.more);
    CAPTURE(text);
    CHECK(text.starts_with("job.json#" + std::string(c.pointer) + ": found "));
    CHECK(text.find(c.stack) != std::string::npos);
  }
}

TEST_CASE("what the scenario allows runs, is among the assumptions, and widens the interval") {
  const std::string pipeline = R"({"pipeline": 4, "schedule": "zb_v"})";
  const Scenario usual = job_with(R"("torchtitan")", R"({"pipeline": 4, "schedule": "1f1b"})");
  CHECK(usual.beyond_stack.empty());
  const Scenario scenario = job_with(
      R"({"preset": "torchtitan", "allow": ["schedules.zb_v", "sharding.zero1"]})", pipeline);
  // Only what the job needs, not all that is allowed.
  CHECK(scenario.beyond_stack == std::vector<std::string>{"schedules.zb_v"});
  CHECK(std::ranges::count(scenario.assumptions,
                           "stack: schedules.zb_v, which torchtitan is not known to do: the "
                           "prediction is as uncertain as one for unknown software") == 1);
  CHECK(interval_of(scenario, test::presets()).known == SoftwareKnown::none);
  CHECK_THROWS_WITH_AS(
      (void)job_with(R"({"preset": "torchtitan", "allow": ["schedules.zbv"]})", pipeline),
      doctest::Contains("Did you mean \"schedules.zb_v\"?"), InputError);
  CHECK_THROWS_WITH_AS(
      (void)job_with(R"({"preset": "torchtitan", "allow": ["schedule.zb_v"]})", pipeline),
      doctest::Contains("Did you mean \"schedules.*\"?"), InputError);
}

TEST_CASE("software that is not named is refused nothing, and what it is taken for is said") {
  const Scenario scenario =
      read_scenario("job.json",
                    R"({"model": "llama3_8b", "cluster": {"node": "dgx_h100", "nodes": 4},
          "batch": {"sequences": 256, "tokens": 4096},
          "parallelism": {"pipeline": 4, "schedule": "zb_v"}})",
                    test::presets());
  CHECK(scenario.beyond_stack == std::vector<std::string>{"schedules.zb_v"});
}

TEST_CASE("a release can run what it could then") {
  const std::string fp4 = R"(, "precision": "mxfp8")";
  const auto text = [&](const char* release) {
    return R"({"model": "llama3_8b", "cluster": {"node": "dgx_b200", "nodes": 1},
               "batch": {"sequences": 256, "tokens": 4096},
               "stack": {"preset": "nemo", "release": ")" +
           std::string(release) + "\"}" + fp4 + "}";
  };
  CHECK_NOTHROW((void)read_scenario("job.json", text("25.05.05"), test::presets()));
  CHECK_THROWS_WITH_AS((void)read_scenario("job.json", text("24.07"), test::presets()),
                       doctest::Contains("allowed: fp16, bf16, fp8, as nemo can do no more"),
                       InputError);
}

TEST_CASE("selective recomputation beside a fused kernel is said to change nothing") {
  const auto says = [](const std::string& stack, const std::string& recompute) {
    const Scenario job = job_with(stack, "{}", R"(, "recompute": )" + recompute);
    return std::ranges::any_of(job.assumptions, [](const std::string& text) {
      return text.starts_with("recompute: \"selective\" repeats attention's core");
    });
  };
  CHECK(says(R"("megatron_core")", R"("selective")"));
  CHECK(says(R"("megatron_core")", R"({"modules": ["core_attention"]})"));
  CHECK_FALSE(says(R"("megatron_core")", R"({"modules": ["fused_attention"]})"));
  CHECK_FALSE(says(R"("megatron_core")", R"({"modules": ["core_attention", "layer_norm"]})"));
  CHECK_FALSE(says(R"("megatron_core")", R"("full")"));
  CHECK_FALSE(says(R"({"preset": "megatron_core", "attention": "unfused"})", R"("selective")"));
}

TEST_CASE("stacks are known by the names that others give them") {
  for (const char* written : {"megatron-core", "Megatron-Core", "mcore", "megatron_core"}) {
    CAPTURE(written);
    CHECK(job_with('"' + std::string(written) + '"', "{}").stack.name == "megatron_core");
    CHECK(test::presets().stack(written).spec.name == "megatron_core");
  }
  CHECK(test::presets().meant("stacks", "megatron-bridge") == "megatron_bridge");
  CHECK(test::presets().meant("stacks", "nobody").empty());
  CHECK_THROWS_WITH_AS((void)job_with(R"("megatron-cor")", "{}"),
                       doctest::Contains("Did you mean \"megatron_core\"?"), InputError);
}

TEST_CASE("a transport can be refined like any other preset") {
  const auto with = [](const std::string& node, const std::string& fabric) {
    return read_scenario("job.json",
                         R"({"model": "llama3_8b", "batch": {"sequences": 256, "tokens": 4096},
                             "stack": "megatron_core", "cluster": {"nodes": 4, "node": )" +
                             node + R"(, "fabric": )" + fabric + "}}",
                         test::presets());
  };
  const std::string rail = R"("rail_optimised")";
  const TransportSpec& infiniband = test::presets().transport("infiniband");
  const TransportSpec& roce = test::presets().transport("roce");
  const Scenario named = with(R"({"preset": "dgx_h100", "transport": {"preset": "roce"}})", rail);
  CHECK(named.transport.name == "roce");
  CHECK(named.transport.efficiency == roce.efficiency);
  const Scenario refined =
      with(R"({"preset": "dgx_h100", "transport": {"preset": "roce", "efficiency": 0.5}})", rail);
  CHECK(refined.transport.efficiency == 0.5);
  CHECK(refined.transport.hop_latency == roce.hop_latency);
  const Scenario changed =
      with(R"({"preset": "dgx_h100", "transport": {"efficiency": 0.5}})", rail);
  CHECK(changed.transport.efficiency == 0.5);
  CHECK(changed.transport.hop_latency == infiniband.hop_latency);
  const Scenario of_fabric =
      with(R"("dgx_h100")",
           R"({"preset": "rail_optimised", "transport": {"preset": "roce", "efficiency": 0.4}})");
  CHECK(of_fabric.transport.efficiency == 0.4);
  CHECK_THROWS_WITH_AS(
      (void)with(R"({"preset": "dgx_h100", "transport": {"preset": "rocee"}})", rail),
      doctest::Contains("Did you mean \"roce\"?"), InputError);
}

}  // namespace lockstep
