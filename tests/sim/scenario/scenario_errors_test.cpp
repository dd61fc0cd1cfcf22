// What a person is told about a scenario that cannot be: every line in full.
#include <array>
#include <doctest/doctest.h>
#include <string>
#include <string_view>

#include "models/base/input_error.hpp"
#include "sim/scenario/read_scenario.hpp"
#include "sim/step/step.hpp"
#include "tests/support/temporary_folder.hpp"

namespace lockstep {
namespace {

/// A scenario without a mistake; each row below makes one with --set.
constexpr std::string_view kSound = R"({
  "model": "gpt3_175b",
  "cluster": {"node": "dgx_a100_80gb", "nodes": 192, "fabric": {"kind": "fat_tree"}},
  "parallelism": {"tensor": 8, "pipeline": 12, "data": 16},
  "batch": {"sequences": 1536, "micro": 1, "tokens": 2048},
  "stack": "megatron_lm_2021"
})";

std::string complaint(std::string_view text, const ScenarioOptions& options = {}) {
  static const PresetStore presets;
  try {
    (void)read_scenario("plan.json", text, presets, options);
  } catch (const InputError& error) {
    return error.what();
  }
  return "fine";
}

struct Mistake {
  std::string_view set;
  std::string_view where;
  std::string_view found;  ///< the option that set it follows
  std::string_view allowed;
};
constexpr std::array kMistakes{
    // Names.
    Mistake{"cluster.fabric.kind=fattree", "/cluster/fabric/kind", "\"fattree\"",
            "ideal, fat_tree, rail_optimised, rail_only, dragonfly, dragonfly_plus, torus, file. "
            "Did you mean \"fat_tree\"?"},
    Mistake{"cluster.fabric.routing=ecpm", "/cluster/fabric/routing", "\"ecpm\"",
            "spray, ecmp, adaptive, minhop, updn, ftree, tables. Did you mean \"ecmp\"?"},
    Mistake{
        "cluster.fabric=no_network", "/cluster/fabric", "\"no_network\"",
        "a fabric between the 192 nodes, which share no NVLink domain. Did you mean \"ideal\"?"},
    Mistake{"precision=bf6", "/precision", "\"bf6\"",
            "fp16, bf16, fp8, mxfp8, nvfp4. Did you mean \"bf16\"?"},
    // torch's words for them.
    Mistake{"precision=bfloat16", "/precision", "\"bfloat16\"",
            "fp16, bf16, fp8, mxfp8, nvfp4. Did you mean \"bf16\"?"},
    Mistake{"precision=half", "/precision", "\"half\"",
            "fp16, bf16, fp8, mxfp8, nvfp4. Did you mean \"fp16\"?"},
    Mistake{"parallelism.sharding=fsdp", "/parallelism/sharding", "\"fsdp\"",
            "none, zero1, zero2, zero3. Did you mean \"zero3\"?"},
    Mistake{"recompute=selectve", "/recompute", "\"selectve\"",
            "none, selective, full, least. Did you mean \"selective\"?"},
    Mistake{"parallelism.sharding=zero4", "/parallelism/sharding", "\"zero4\"",
            "none, zero1, zero2, zero3. Did you mean \"zero1\"?"},
    Mistake{"parallelism.schedule=1f1d", "/parallelism/schedule", "\"1f1d\"",
            "gpipe, 1f1b, interleaved, breadth_first, zb_h1, zb_h2, zb_v, dualpipe, dualpipev. Did "
            "you mean \"1f1b\"?"},
    // Keys.
    Mistake{"parallelism.tensr=8", "/parallelism/tensr", "the unknown key \"tensr\"",
            "tensor, context, expert, expert_tensor, expert_dispatch, expert_overlap, "
            "context_exchange, pipeline, data, virtual_stages, sequence, tensor_overlap, sharding, "
            "shard_group, reshard, prefetch, schedule, schedule_file, embedding, output, "
            "layers_per_stage. Did "
            "you mean \"tensor\"?"},
    Mistake{
        "bach=3", "/bach", "the unknown key \"bach\"",
        "$schema, about, model, cluster, parallelism, batch, precision, recompute, routing, lora, "
        "offload, frozen, stack, stragglers, training, price, expect, run, rl, power, cost. Did "
        "you mean \"batch\"?"},
    // Numbers that cannot be.
    Mistake{"cluster.nodes=0", "/cluster/nodes", "0", "a whole number from 1 to 1000000"},
    Mistake{"cluster.nodes=-4", "/cluster/nodes", "-4", "a whole number from 1 to 1000000"},
    Mistake{"cluster.nodes=1e300", "/cluster/nodes", "1e+300", "a whole number from 1 to 1000000"},
    Mistake{"cluster.nodes=NaN", "/cluster/nodes", "\"NaN\"", "a whole number from 1 to 1000000"},
    Mistake{"cluster.nodes=1.5", "/cluster/nodes", "1.5", "a whole number from 1 to 1000000"},
    Mistake{"batch.tokens=1000000000000", "/batch/tokens", "1000000000000",
            "a whole number from 1 to 16777216"},
    Mistake{"expect.within=-1 %", "/expect/within", "\"-1 %\"", "a number from 0 to 10"},
    Mistake{"training.tokens=0", "/training/tokens", "0", "a number from 1 to 1e+18"},
    // Units.
    Mistake{"cluster.fabric.link_bandwidth=400 GiB", "/cluster/fabric/link_bandwidth",
            "\"400 GiB\"",
            "a number with a unit of data rate: Gb/s, GB/s, TB/s, MB/s, kB/s, B/s, Tb/s, Mb/s, "
            "MiB/s, GiB/s, TiB/s. Did you mean \"GiB/s\"?"},
    Mistake{"expect.step_time=3 sec", "/expect/step_time", "\"3 sec\"",
            "a number with a unit of time: s, ms, us, ns, min, h, d, weeks, months"},
    Mistake{"training.tokens=300 billion", "/training/tokens", "\"300 billion\"",
            "a number or a number with a unit of count: tokens, k tokens, M tokens, B tokens, "
            "T tokens, k, M, B, T"},
    // What does not fit the rest.
    Mistake{"parallelism.context_exchange=ring", "/parallelism/context_exchange", "\"ring\"",
            "no such key, where context is 1"},
    Mistake{"parallelism.shard_group=8", "/parallelism/shard_group", "8",
            "no such key, unless sharding is zero3"},
    Mistake{"parallelism.prefetch=2", "/parallelism/prefetch", "2",
            "no such key, unless sharding is zero3"},
    Mistake{"parallelism.expert=2", "/parallelism/expert", "2", "1, as the model has no experts"},
    Mistake{"routing={\"imbalance\": 2}", "/routing", "an object",
            "no such key, as the model has no experts"},
    Mistake{"model.experts={\"count\": 8, \"per_token\": 9, \"ffn\": 64}",
            "/model/experts/per_token", "9", "at most 8 (count)"},
    Mistake{"parallelism.tensor=7", "/parallelism/tensor", "7",
            "a divisor of 96 (attention heads of gpt3_175b)"},
    Mistake{"cluster.node.gpu.nvlink_bandwidth=1", "/cluster/node/gpu/nvlink_bandwidth", "1",
            "a data rate from 10 MB/s to 10000 TB/s, or 0"},
    Mistake{"cluster.node.gpu.hbm_capacity=1 B", "/cluster/node/gpu/hbm_capacity", "\"1 B\"",
            "an amount of data from 1 MB to 1000 TB"},
    Mistake{"model.kv_heads=7", "/model/kv_heads", "7", "a divisor of 96 (heads)"},
    Mistake{"parallelism.pipeline=99", "/parallelism/pipeline", "99",
            "at most 98 (layers of gpt3_175b, plus embedding and output)"},
    Mistake{"parallelism.virtual_stages=9", "/parallelism/virtual_stages", "9",
            "at most 8, so that pipeline 12 x virtual_stages is at most 98 (layers of gpt3_175b, "
            "plus embedding and output)"},
    Mistake{"parallelism.layers_per_stage=[96]", "/parallelism/layers_per_stage",
            "an array of 1 elements", "12 elements (pipeline 12 x virtual_stages 1)"},
    Mistake{"parallelism.layers_per_stage=[8,8,8,8,8,8,8,8,8,8,8,7]",
            "/parallelism/layers_per_stage", "95 layers", "96 (layers of gpt3_175b)"},
    Mistake{"batch.sequences=1530", "/batch/sequences", "1530",
            "a multiple of 16 (micro 1 x data 16)"},
    Mistake{"stragglers=[{\"gpu\": 1536, \"slowdown\": 1.1}]", "/stragglers/0/gpu", "1536",
            "a GPU of the job, 0 to 1535"},
    Mistake{"stragglers=[{\"gpu\": 3, \"slowdown\": 0.9}]", "/stragglers/0/slowdown", "0.9",
            "a number from 1 to 100"},
    Mistake{"stragglers=[{\"gpu\": 3, \"slowdown\": 2}, {\"gpu\": 3, \"slowdown\": 3}]",
            "/stragglers/1/gpu", "3", "each GPU once"},
    Mistake{"precision=fp8", "/precision", "\"fp8\"", "fp16, bf16 (a100_sxm4_80gb has no other)"},
    Mistake{"cluster.fabric.leaf_ports_down=4", "/cluster/fabric/leaf_ports_down", "4",
            "at least 8: a fat tree has all NICs of a node on one leaf"},
    Mistake{"cluster.node.nvlink_domain=3", "/cluster/node/nvlink_domain", "3",
            "a divisor or a multiple of 8 (GPUs of a node)"},
};

}  // namespace

TEST_CASE("a sound scenario is read without complaint") { CHECK(complaint(kSound) == "fine"); }

TEST_CASE("a mistake in one value: the line says where, what, by which option, and what instead") {
  for (const Mistake& row : kMistakes) {
    const std::string set(row.set);
    CHECK(complaint(kSound, {.set = {set}}) == "plan.json#" + std::string(row.where) + ": found " +
                                                   std::string(row.found) + " (--set " + set +
                                                   "); allowed: " + std::string(row.allowed));
  }
}

TEST_CASE("an unknown preset: the names that there are, and the nearest") {
  const std::string line = complaint(kSound, {.set = {"cluster.node=dgx_a100_80g"}});
  CHECK(
      line.starts_with("plan.json#/cluster/node: found \"dgx_a100_80g\" (--set "
                       "cluster.node=dgx_a100_80g); allowed: alps_gh200, "));
  CHECK(line.ends_with(". Did you mean \"dgx_a100_80gb\"?"));
}

TEST_CASE("misfits between values name both") {
  CHECK(complaint(kSound, {.set = {"parallelism.data=8"}}) ==
        "plan.json#/parallelism: found tensor 8 x pipeline 12 x data 8 = 768 GPUs; allowed: 1536 "
        "(192 nodes of 8)");
  CHECK(complaint(kSound, {.set = {"batch.micro=5", "batch.sequences=1600",
                                   "parallelism.virtual_stages=2"}}) ==
        "plan.json#/batch/sequences: found 1600 (--set batch.sequences=1600); allowed: a multiple "
        "of 960 (micro 5 x data 16 x pipeline 12), which the interleaved schedule needs");
  CHECK(complaint(kSound, {.set = {"parallelism.virtual_stages=2", "parallelism.schedule=1f1b"}}) ==
        "plan.json#/parallelism/schedule: found \"1f1b\" (--set parallelism.schedule=1f1b); "
        "allowed: interleaved, breadth_first, zb_v, dualpipev, where virtual_stages is 2");
  CHECK(complaint(kSound,
                  {.set = {"parallelism.virtual_stages=1", "parallelism.schedule=interleaved"}}) ==
        "plan.json#/parallelism/schedule: found \"interleaved\" (--set "
        "parallelism.schedule=interleaved); allowed: gpipe, 1f1b, breadth_first, zb_h1, zb_h2, "
        "dualpipe, where virtual_stages is 1");
  CHECK(complaint(kSound, {.set = {"parallelism.schedule=dualpipe", "batch.sequences=320"}}) ==
        "plan.json#/batch/sequences: found 320 (--set batch.sequences=320); allowed: at least 384 "
        "(micro 1 x data 16 x 2 x pipeline 12), which the dualpipe schedule needs");
  const std::string allow =
      R"(stack={"preset": "megatron_lm_2021", "allow": ["layouts.layer_ends",
                "layouts.replicated_key_values"]})";
  CHECK(complaint(kSound, {.set = {"parallelism.embedding=stage", "parallelism.output=layer",
                                   "model.layers=10", allow}}) == "fine");
  CHECK(complaint(kSound, {.set = {"parallelism.output=beside", "model.layers=11"}}) ==
        "plan.json#/parallelism/output: found \"beside\" (--set parallelism.output=beside); "
        "allowed: places that leave each of 12 stages a layer, or embedding or output in the place "
        "of one");
  CHECK(complaint(kSound, {.set = {"model.heads=64", "model.kv_heads=4", "model.hidden=8192",
                                   "parallelism.tensor=16", "parallelism.data=8", allow}}) ==
        "fine");
  CHECK(complaint(kSound,
                  {.set = {"model.heads=48", "model.kv_heads=12", "parallelism.tensor=16"}}) ==
        "plan.json#/parallelism/tensor: found 16 (--set parallelism.tensor=16); allowed: a divisor "
        "or a multiple of 12 (key-value heads of gpt3_175b)");
  CHECK(complaint(kSound, {.set = {"model.ffn=4"}}) ==
        "plan.json#/parallelism/tensor: found 8; allowed: at most 4 (ffn of gpt3_175b)");
  CHECK(complaint(kSound, {.set = {"cluster.node=dgx_h100", "cluster.node.gpu.peak_bf16=0",
                                   "precision=fp8"}}) ==
        "plan.json#/precision: found \"fp8\" (--set precision=fp8); allowed: fp16 "
        "(h100_sxm5_80gb has no other)");
  // Kernels are timed in it; no job trains in it.
  CHECK(complaint(kSound, {.set = {"precision=tf32"}}) ==
        "plan.json#/precision: found \"tf32\" (--set precision=tf32); allowed: fp16, bf16, fp8, "
        "mxfp8, nvfp4");
  CHECK(complaint(kSound, {.set = {"parallelism.sequence=true", "batch.tokens=2044"}}) ==
        "plan.json#/batch/tokens: found 2044 (--set batch.tokens=2044); allowed: a multiple of 8 "
        "(tensor), which sequence parallelism needs");
  CHECK(complaint(kSound, {.set = {"parallelism={\"pipeline\": 1, \"virtual_stages\": 2}"}}) ==
        "plan.json#/parallelism/virtual_stages: found 2 (--set parallelism={\"pipeline\": 1, "
        "\"virtual_stages\": 2}); allowed: 1, where pipeline is 1");
  CHECK(complaint(kSound, {.set = {"parallelism={\"tensor\": 8, \"pipeline\": 7}"}}) ==
        "plan.json#/cluster/nodes: found 192 (1536 GPUs); allowed: a multiple of 56 GPUs (tensor 8 "
        "x pipeline 7)");
}

TEST_CASE("a fabric that cannot join its nodes says what would do") {
  const std::string line = complaint(kSound, {.set = {"cluster.fabric.switch_ports=16"}});
  CHECK(
      line.starts_with("plan.json#/cluster/fabric/levels: found 2; allowed: 3, or switch_ports "
                       "of at least "));
}

TEST_CASE("a fabric with a mistake in its faults, files or routing: where, and what instead") {
  struct Line {
    std::string set, says;
  };
  for (
      const Line& line : {
          Line{
              R"(faults=[{"switch": "leef 1"}])",
              "faults/0/switch: found \"leef 1\"; allowed: a NIC or switch of this fabric, such as "
              "\"node 0 nic 0\" or \"spine 31\". Did you mean \"leaf 1\"?"},
          Line{R"(faults=[{"cable": "leaf 0"}])",
               "faults/0/cable: found \"leaf 0\"; allowed: the names of both ends, \"leaf 0 to "
               "spine 1\" or [\"leaf 0\", \"spine 1\"]"},
          Line{R"(faults=[{"cable": ["leaf 0", "spine 1"], "rate": "slow"}])",
               "faults/0/rate: found \"slow\"; allowed: \"down\", or a number from 0 to 1"},
          Line{R"(faults=[{"rate": 0.5}])",
               "faults/0: found an object; allowed: one of cable, switch, nic, cables_missing"},
          Line{R"(faults=[{"nic": "node 7 nic 0"}])",
               "faults: found node 0 nic 0 cannot reach node 7 nic 0; allowed: a fabric that joins "
               "all NICs within 254 switches"},
          Line{"file=net.json",
               "file: found \"net.json\"; allowed: no such key, unless \"kind\" is "
               "\"file\""},
          Line{"tables=dump",
               "tables: found \"dump\"; allowed: no such key, unless \"routing\" is "
               "\"tables\""},
          Line{"torus=[4]", "torus: found an array; allowed: the sides of two or three dimensions"},
      }) {
    std::string found = complaint(kSound, {.set = {"cluster.fabric." + line.set}});
    const std::string option = " (--set cluster.fabric." + line.set + ")";
    if (const std::size_t at = found.find(option); at != std::string::npos) {
      found.erase(at, option.size());
    }
    CHECK(found == "plan.json#/cluster/fabric/" + line.says);
  }
}

TEST_CASE("a step beyond the clock, or more passes than memory holds, is refused") {
  const std::string line = complaint(kSound, {.set = {"batch.tokens=16777216"}});
  CHECK(line.starts_with("plan.json#/batch: found a step of up to "));
  CHECK(line.ends_with(" s of computing; allowed: at most 1,000,000 s"));
  CHECK(complaint(kSound, {.set = {"batch.sequences=16000000"}}) ==
        "plan.json#/batch/sequences: found 1000000 micro batches a replica (--set "
        "batch.sequences=16000000); allowed: at most 65536");
}

TEST_CASE("a step of a million tokens on a thin fabric is simulated") {
  const PresetStore presets;
  const std::string text = R"({"model": "llama3_70b",
    "cluster": {"node": "dgx_h100", "nodes": 64,
                "fabric": {"kind": "fat_tree", "leaf_oversubscription": 32}},
    "parallelism": {"tensor": 8, "context": 8, "data": 8, "sharding": "zero3"},
    "batch": {"sequences": 8, "tokens": 1048576, "micro": 1}, "recompute": "full"})";
  const auto step_s = [&](const std::vector<std::string>& sets) {
    return simulate_step(read_scenario("long.json", text, presets, {.set = sets})).step_s;
  };
  const double thin = step_s({}), wide = step_s({"cluster.fabric.leaf_oversubscription=1"});
  CHECK(wide > 60);
  CHECK(thin >= wide);
  CHECK(thin < 32 * wide);
  // A thousand bytes a second: the clock ends first.
  CHECK_THROWS_AS(
      step_s({"cluster.node={\"preset\": \"dgx_h100\", \"nic_bandwidth\": \"1 kB/s\"}"}),
      InputError);
}

TEST_CASE("numbers that are sensible one by one make no model of 1e15 weights, or 1e6 buckets") {
  // 9996 layers of 1048576 x (4 x 12288 + 2 x 49152), attention and MLP.
  CHECK(complaint(kSound, {.set = {"model.hidden=1048576", "model.layers=9996"}}) ==
        "plan.json#/model: found 1,546 T weights; allowed: at most 100 T");
  CHECK(complaint(kSound, {.set = {"stack.communication.bucket_parameters=10000"}}) ==
        "plan.json#/stack/communication/bucket_parameters: found 10.0 k (--set "
        "stack.communication.bucket_parameters=10000); allowed: at least 19.8 k (100 k buckets of "
        "1.98 B weights)");
}

TEST_CASE("what is no scenario at all") {
  CHECK(complaint("") == "plan.json: found an empty text; allowed: a JSON object");
  CHECK(complaint("[]") == "plan.json: found an array; allowed: an object");
  CHECK(
      complaint("{}") ==
      "plan.json: found an object without \"model\", \"cluster\" and \"batch\"; allowed: an object "
      "with them, such as "
      "{\"model\":\"llama3_2_1b\",\"cluster\":{\"node\":\"dgx_h100\",\"nodes\":4},"
      "\"batch\":{\"sequences\":256,\"tokens\":4096}}");
  CHECK(complaint("null") == "plan.json: found null; allowed: an object");
  CHECK(complaint(R"({"model": 3})") ==
        "plan.json#/model: found 3; allowed: the name of a preset, or an object with \"preset\", "
        "\"huggingface\" or a shape");
  CHECK(complaint(R"({"model": "gpt3_175b", "cluster": {"nodes": 3}})") ==
        "plan.json: found an object without \"/cluster/node\" and \"/batch\"; allowed: an object "
        "with "
        "them, such as "
        "{\"/cluster/node\":\"dgx_h100\",\"/batch\":{\"sequences\":256,\"tokens\":4096}}");
}

TEST_CASE("a Hugging Face config is looked for beside the scenario, and named in its errors") {
  const test::TemporaryFolder folder;
  const PresetStore presets;
  const std::string scenario =
      folder.write("plan.json", R"({"model": {"huggingface": "tiny/config.json"},
                       "cluster": {"node": "dgx_h100"}, "batch": {"sequences": 8, "tokens": 64}})");
  const std::string config = folder.path() + "/tiny/config.json";
  CHECK_THROWS_WITH_AS(
      (void)load_scenario(scenario, presets),
      (config + ": found no such file; allowed: a readable text file of at most 16 MiB").c_str(),
      InputError);
  folder.write("tiny/config.json", R"({"model_type": "llama", "num_hidden_layers": 0})");
  CHECK_THROWS_WITH_AS(
      (void)load_scenario(scenario, presets),
      (config + "#/num_hidden_layers: found 0; allowed: a whole number from 1 to 10000").c_str(),
      InputError);
  CHECK(complaint(R"({"model": {"preset": "gpt3_175b", "huggingface": "x"}})") ==
        "plan.json#/model/huggingface: found \"x\"; allowed: either \"preset\" or "
        "\"huggingface\"");
}

}  // namespace lockstep
