#include "sim/scenario/read_scenario.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/input_error.hpp"
#include "models/base/json_cursor.hpp"
#include "models/base/text_file.hpp"
#include "tests/support/source_tree.hpp"
#include "tests/support/temporary_folder.hpp"

namespace lockstep {
namespace {

constexpr std::string_view kShort = R"({
  "model": "llama3_8b",
  "cluster": {"node": "dgx_h100"},
  "batch": {"sequences": 64, "tokens": 4096}
})";

Scenario read(std::string_view text, const std::vector<std::string>& sets = {}) {
  static const PresetStore presets;
  return read_scenario("plan.json", text, presets, {.set = sets});
}

bool assumes(const Scenario& scenario, const std::string& words) {
  return std::ranges::find(scenario.assumptions, words) != scenario.assumptions.end();
}

}  // namespace

TEST_CASE("read_scenario: what a short scenario leaves open is filled in and said") {
  const Scenario scenario = read(kShort);
  CHECK(scenario.gpus() == 1);
  CHECK(scenario.nodes == 1);
  CHECK(scenario.job.batch.micro_sequences == 1);
  CHECK(scenario.job.precision == Precision::bf16);
  CHECK(scenario.stack.name == "neutral");
  CHECK(assumes(scenario, "data: 1 (neither data nor nodes given)"));
  CHECK(assumes(scenario, "nodes: 1 (as many as needed)"));
  CHECK(assumes(scenario, "stack: neutral (not given)"));
  CHECK(assumes(scenario, "recompute: none (not given)"));
  CHECK(assumes(scenario, "precision: bf16 (not given)"));
}

TEST_CASE("read_scenario: nodes follow from the parallelism, and replicas from the nodes") {
  const Scenario from_data = read(kShort, {"parallelism.tensor=8", "parallelism.data=4"});
  CHECK(from_data.nodes == 4);
  const Scenario from_nodes = read(kShort, {"parallelism.tensor=8", "cluster.nodes=4"});
  CHECK(from_nodes.job.parallelism.data == 4);
  CHECK(assumes(from_nodes, "data: 4 (all GPUs of the cluster)"));
  // A single node may be used in part.
  CHECK(read(kShort, {"parallelism.data=4", "cluster.nodes=1"}).gpus() == 4);
}

TEST_CASE(
    "read_scenario: sequence parallelism is the stack's where tensor parallelism is, and said") {
  CHECK_FALSE(read(kShort).job.parallelism.sequence);
  const Scenario split = read(kShort, {"parallelism.tensor=4"});
  CHECK(split.job.parallelism.sequence);
  CHECK(assumes(split, "sequence: true (neutral default)"));
  CHECK_FALSE(read(kShort, {"parallelism.tensor=4", "parallelism.sequence=false"})
                  .job.parallelism.sequence);
}

TEST_CASE("read_scenario: the stack decides how experts are cut, and the answer says so") {
  const std::vector<std::string> experts{R"(model.experts={"count":8,"per_token":2,"ffn":14336})",
                                         "parallelism.tensor=4"};
  const auto with_stack = [&](const std::string& stack) {
    std::vector<std::string> sets = experts;
    sets.push_back("stack=" + stack);
    return read(kShort, sets);
  };
  CHECK(with_stack("megatron_core").job.parallelism.expert_tensor == 4);
  CHECK(assumes(with_stack("megatron_core"), "expert_tensor: 4 (megatron_core default)"));
  CHECK(with_stack("torchtitan").job.parallelism.expert_tensor == 1);
  CHECK(assumes(with_stack("torchtitan"), "expert_tensor: 1 (torchtitan default)"));
  std::vector<std::string> said = experts;
  said.emplace_back("parallelism.expert_tensor=2");
  CHECK(read(kShort, said).job.parallelism.expert_tensor == 2);
  CHECK(read(kShort, {"parallelism.tensor=4"}).job.parallelism.expert_tensor == 1);
}

TEST_CASE("read_scenario: other spellings of a preset, and other words for one") {
  CHECK(read(kShort, {"stack=megatron-core"}).stack.name == "megatron_core");
  CHECK(read(kShort, {"stack=Megatron-LM-2021"}).stack.name == "megatron_lm_2021");
  CHECK_FALSE(read(kShort, {"stack=megatron-core"}).stack.stands_in);
  const Scenario tcp = read(kShort, {"cluster.node={\"preset\":\"dgx_h100\",\"transport\":\"tcp\"}",
                                     "parallelism.data=16"});
  CHECK(tcp.transport.name == "ethernet");
  CHECK(assumes(tcp, "transport: ethernet (stands for tcp)"));
}

TEST_CASE("read_scenario: a stack with constants at a bound of their fit says so in one line") {
  const std::string shipped = LOCKSTEP_SOURCE_DIR "/models/presets/stacks/megatron_core.json";
  std::string bounded = read_text_file(shipped);
  bounded.insert(bounded.find('{') + 1,
                 R"("constants_at_bounds": {"value": ["elementwise.slowdown"], "source": "fit"},)");
  const test::TemporaryFolder folder;
  folder.write("stacks/bounded.json", bounded);
  const PresetStore presets({folder.path()});
  const auto lines = [&](const std::string& stack) {
    const Scenario scenario = read_scenario("plan.json", kShort, presets, {.set = {stack}});
    return std::ranges::count_if(scenario.assumptions, [](const std::string& words) {
      return words.find("at a bound of what is plausible") != std::string::npos;
    });
  };
  CHECK(lines("stack=bounded") == 1);
  CHECK(lines("stack=megatron_core") == 0);
}

TEST_CASE("read_scenario: virtual stages are the most of the stack's default that divides") {
  const auto stages = [](const std::vector<std::string>& sets) {
    std::vector<std::string> all{"stack.default_virtual_stages=6", "parallelism.pipeline=4",
                                 "parallelism.data=1"};
    all.insert(all.end(), sets.begin(), sets.end());
    return read(kShort, all).job.parallelism;
  };
  CHECK(stages({}).virtual_stages == 4);  // 32 layers: 4 x 4, not 4 x 6 or 4 x 5
  CHECK(stages({}).schedule == Schedule::interleaved);
  CHECK(stages({"model.layers=46"}).virtual_stages == 6);     // 46 + embedding + output = 2 x 4 x 6
  CHECK(stages({"batch.sequences=63"}).virtual_stages == 1);  // 63 micro batches: no groups of 4
  CHECK(stages({"batch.sequences=63"}).schedule == Schedule::one_f_one_b);
  CHECK(stages({"parallelism.schedule=gpipe"}).virtual_stages == 1);
  CHECK(stages({"parallelism.layers_per_stage=[4,4,4,4,4,4,4,4]"}).virtual_stages == 2);
}

TEST_CASE("read_scenario: presets can be refined down to a constant of the GPU") {
  const PresetStore presets;
  const Scenario scenario =
      read(kShort, {"model.layers=40", "cluster.node.nic_bandwidth=200 Gb/s",
                    "cluster.node.gpu.gemm.efficiency=0.5",
                    "cluster.node.gpu.attention.flash2.ramp_tokens=100",
                    "cluster.fabric.leaf_oversubscription=4", "stack.elementwise.slowdown=2",
                    "price.usd_per_gpu_hour=2.5", "training.tokens=1 T tokens"});
  CHECK(scenario.job.model.layers == 40);
  CHECK(scenario.job.model.hidden == presets.model("llama3_8b").hidden);
  CHECK(scenario.node.nic_bandwidth == gigabits_per_second(200));
  CHECK(scenario.node.gpu.gemm.efficiency == 0.5);
  CHECK(scenario.node.gpu.gemm.launch == presets.node("dgx_h100").gpu.gemm.launch);
  const auto flash2 = static_cast<std::size_t>(AttentionKernel::flash2);
  CHECK(scenario.node.gpu.attention.at(flash2)->ramp_tokens == 100);
  CHECK(scenario.node.gpu.attention.at(flash2)->efficiency ==
        presets.node("dgx_h100").gpu.attention.at(flash2)->efficiency);
  CHECK(scenario.fabric.leaf_oversubscription == 4);
  CHECK(scenario.stack.elementwise.slowdown == 2);
  CHECK(scenario.usd_per_gpu_hour == 2.5);
  CHECK(scenario.training_tokens == 1e12);
}

TEST_CASE("read_scenario: another GPU in the node, a fabric of a kind, a transport of its own") {
  const Scenario scenario =
      read(kShort, {"cluster.node.gpu=a100_sxm4_40gb", "cluster.fabric.kind=fat_tree",
                    "cluster.fabric.transport=roce"});
  CHECK(scenario.node.gpu.name == "a100_sxm4_40gb");
  CHECK(scenario.fabric.kind == FabricKind::fat_tree);
  CHECK(scenario.fabric.name == "fat_tree");
  CHECK(scenario.transport.name == "roce");
}

TEST_CASE("read_scenario: a Hugging Face config gives the shape, refined like a preset") {
  const test::TemporaryFolder folder;
  folder.write("tiny/config.json",
               R"({"model_type": "llama", "hidden_size": 64, "intermediate_size": 256,
                   "num_attention_heads": 8, "num_key_value_heads": 2, "num_hidden_layers": 4,
                   "vocab_size": 1000, "time_step_limit": [0.0, Infinity], "beta": NaN})");
  const std::string file =
      folder.write("plan.json", R"({"model": {"huggingface": "tiny/config.json", "layers": 6},
                       "cluster": {"node": "dgx_h100"}, "batch": {"sequences": 8, "tokens": 64}})");
  const Scenario scenario = load_scenario(file, PresetStore());
  CHECK(scenario.job.model.name == "tiny");
  CHECK(scenario.job.model.layers == 6);
  CHECK(scenario.job.model.kv_heads == 2);
}

TEST_CASE("read_scenario: stragglers and expectations arrive as written") {
  const Scenario scenario =
      read(kShort, {R"(stragglers=[{"gpu": 0, "slowdown": 1.2}])",
                    R"(expect={"step_time": "1.5 s", "mfu": "41 %", "within": "6 %",
                               "source": "here"})"});
  REQUIRE(scenario.stragglers.size() == 1);
  CHECK(scenario.stragglers[0].slowdown == 1.2);
  REQUIRE(scenario.expect.has_value());
  CHECK(scenario.expect->step_time == Seconds{1.5});
  CHECK(scenario.expect->mfu == doctest::Approx(0.41));
  CHECK(scenario.expect->within == doctest::Approx(0.06));
  CHECK(scenario.expect->source == "here");
}

TEST_CASE("read_scenario: what was measured is not held against another job") {
  const PresetStore presets;
  const std::string file = LOCKSTEP_SOURCE_DIR "/scenarios/llama3-405b-16k.json";
  CHECK(load_scenario(file, presets).expect);
  const Scenario changed = load_scenario(file, presets, {.set = {"recompute=full"}});
  CHECK_FALSE(changed.expect);
  CHECK(
      std::ranges::find(changed.assumptions,
                        "expect: not compared, as other keys were set than the measured job has") !=
      changed.assumptions.end());
  CHECK(load_scenario(file, presets, {.set = {"recompute=full", "expect.mfu=0.3"}}).expect);
}

TEST_CASE("complete_scenario: a draft made without JSON is completed and checked alike") {
  const PresetStore presets;
  ScenarioDraft draft;
  draft.file = "rows.json row 7";
  draft.model = presets.model("gpt3_175b");
  draft.node = presets.node("dgx_a100_80gb");
  draft.stack = presets.stack("megatron_lm_2021").spec;
  draft.tensor = 8;
  draft.pipeline = 8;
  draft.data = 2;
  draft.batch = {.sequences = 64, .micro_sequences = 1, .tokens = 2048};
  CHECK(complete_scenario(draft, presets).nodes == 16);
  draft.tensor = 5;
  CHECK_THROWS_WITH_AS((void)complete_scenario(draft, presets),
                       "rows.json row 7#/parallelism/tensor: found 5; allowed: a divisor of 96 "
                       "(attention heads of gpt3_175b)",
                       InputError);
}

TEST_CASE("every scenario that ships can be read") {
  const PresetStore presets;
  int read_files = 0;
  for (const std::string& file : test::source_files({"scenarios"})) {
    if (!file.ends_with(".json") || file.ends_with(".schema.json")) continue;
    CAPTURE(file);
    const std::string text = read_text_file(std::string(LOCKSTEP_SOURCE_DIR) + "/" + file);
    const JsonCursor root = JsonCursor::parse(file, text);
    // Those of several jobs and of lockstep comm have readers and tests of their own.
    if (root.find("jobs") || root.find("traffic") || root.find("collective")) continue;
    if (root.find("queue") || root.find("serving")) continue;
    if (root.find("axes")) continue;        // a sweep
    if (root.find("candidates")) continue;  // a plan
    if (root.find("filling")) continue;     // a cluster that is filled
    CHECK_NOTHROW((void)load_scenario(std::string(LOCKSTEP_SOURCE_DIR) + "/" + file, presets));
    ++read_files;
  }
  CHECK(read_files > 0);
}

}  // namespace lockstep
