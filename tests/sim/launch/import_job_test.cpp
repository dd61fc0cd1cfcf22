#include "sim/launch/import_job.hpp"

#include <algorithm>
#include <array>
#include <doctest/doctest.h>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "sim/scenario/read_scenario.hpp"
#include "tests/support/presets.hpp"
#include "tests/support/real_files.hpp"
#include "tests/support/temporary_folder.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

/// A file of this text, imported.
JobImport imported(const std::string& name, const std::string& text,
                   JobImportOptions options = {}) {
  const test::TemporaryFolder folder;
  return import_job({folder.write(name, text)}, options, test::presets());
}

Json job_of(const JobImport& found) { return Json::parse(found.scenario); }

/// What the import says instead of a scenario, the file's folder left out.
std::string refusal(const std::string& name, const std::string& text,
                    const JobImportOptions& options = {}) {
  try {
    (void)imported(name, text, options);
  } catch (const InputError& error) {
    const std::string line = error.what();
    return line.substr(std::min(line.find(name), line.size()));
  }
  return "imported";
}

std::string fate_of(const JobImport& found, std::string_view key) {
  for (const KeyFinding& one : found.keys) {
    if (one.setting.key == key) {
      return std::array{"used", "harmless", "not modelled", "unknown"}.at(
          static_cast<std::size_t>(one.fate));
    }
  }
  return "absent";
}

constexpr const char* kMegatron = R"(#!/bin/bash
NODES=${NODES:-16}
MODEL=(
  --num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336 --num-attention-heads 32
  --group-query-attention --num-query-groups 8 --swiglu --normalization RMSNorm
  --untie-embeddings-and-output-weights --disable-bias-linear --position-embedding-type rope
  --vocab-size 128256 --seq-length 8192 --max-position-embeddings 8192
)
torchrun --nnodes $NODES --nproc_per_node 8 pretrain_gpt.py "${MODEL[@]}" \
  --tensor-model-parallel-size 4 --pipeline-model-parallel-size 4 --context-parallel-size 2 \
  --num-layers-per-virtual-pipeline-stage 4 --sequence-parallel --use-distributed-optimizer \
  --micro-batch-size 1 --global-batch-size 128 --bf16 --recompute-granularity selective \
  --overlap-grad-reduce --overlap-param-gather --lr 1e-4 --qk-layernorm --frobnicate 3
)";

}  // namespace

TEST_CASE("import job: arguments of Megatron-LM become the layout that they say") {
  const JobImport found = imported("train.sh", kMegatron);
  const Json job = job_of(found);
  // Four ranks share the vocabulary: it is a multiple of 4 x 128.
  CHECK(job["model"].dump() == R"({"preset":"llama3_8b","vocabulary":128512})");
  CHECK(job["cluster"]["nodes"] == 16);
  CHECK(job["parallelism"].dump() ==
        R"({"tensor":4,"context":2,"pipeline":4,"data":4,"virtual_stages":2,"sequence":true,)"
        R"("sharding":"zero1"})");
  CHECK(job["batch"].dump() == R"({"sequences":128,"micro":1,"tokens":8192})");
  CHECK(job["recompute"].dump() == R"({"modules":["fused_attention"]})");
  CHECK(job["stack"] == "megatron_core");
}

TEST_CASE("import job: Megatron-Core's core_attn runs a fused kernel again, others' does not") {
  const auto with = [](std::string_view from, const std::string& to) {
    std::string text = kMegatron;
    const std::size_t at = text.find(from);
    REQUIRE(at != std::string::npos);
    return job_of(imported("train.sh", text.replace(at, from.size(), to)));
  };
  CHECK(with("--bf16", "--bf16 --recompute-modules core_attn layernorm")["recompute"].dump() ==
        R"({"modules":["fused_attention","layer_norm"]})");
  CHECK(with("--bf16", "--bf16 --recompute-modules layernorm")["recompute"].dump() ==
        R"({"modules":["layer_norm"]})");
  // What is not one kernel gives its scores again, as the scenario's word has it.
  const Json unfused = with("--bf16", "--bf16 --attention-backend unfused");
  CHECK(unfused["recompute"] == "selective");
  CHECK(unfused["stack"]["attention"] == "unfused");
  const Json own = with("--bf16", "--bf16 --transformer-impl local");
  CHECK(own["stack"]["attention"] == "unfused");
  CHECK(with("--bf16", "--bf16 --transformer-impl local --use-flash-attn")["stack"] ==
        "megatron_core");
}

TEST_CASE("import job: uniform recomputation is of all layers, a block of those that it counts") {
  const auto remarks_of = [](const std::string& method) {
    std::string text = kMegatron;
    const std::size_t at = text.find("selective");
    REQUIRE(at != std::string::npos);
    text.replace(at, 9, "full --recompute-method " + method + " --recompute-num-layers 1");
    const JobImport found = imported("train.sh", text);
    CHECK(job_of(found)["recompute"] == "full");
    return found.remarks.size();
  };
  CHECK(remarks_of("uniform") == 0);
  CHECK(remarks_of("block") == 1);
}

TEST_CASE("import job: the kernel of attention is what the files ask for, by any name") {
  const std::string yaml = R"(model_name_or_path: meta-llama/Meta-Llama-3-8B
per_device_train_batch_size: 1
cutoff_len: 2048
bf16: true
finetuning_type: lora
lora_rank: 8
)";
  const auto stack_with = [&](const std::string& line) {
    return job_of(imported("sft.yaml", yaml + line + "\n"))["stack"];
  };
  CHECK(stack_with("attn_implementation: eager")["attention"] == "unfused");
  CHECK(stack_with("flash_attn: disabled")["attention"] == "unfused");
  CHECK(stack_with("eager_attention: true")["attention"] == "unfused");
  for (const char* const fused :
       {"attn_implementation: sdpa", "attn_implementation: flash_attention_2", "flash_attn: fa2",
        "flash_attn: auto", "flash_attention: true"}) {
    CAPTURE(fused);
    CHECK(stack_with(fused) == "huggingface_fsdp2");
  }
  // A stack whose own kernel is unfused is given another.
  const Json job = job_of(imported("train.sh",
                                   "deepspeed pretrain_gpt.py --num-layers 24 --hidden-size 2048 "
                                   "--num-attention-heads 16 --seq-length 2048 "
                                   "--micro-batch-size 4 --global-batch-size 256 --zero-stage 1 "
                                   "--max-position-embeddings 2048 --use-flash-attn --fp16\n"));
  CHECK(job["stack"]["preset"] == "megatron_deepspeed");
  CHECK(job["stack"]["attention"] == "flash2");
}

TEST_CASE("import job: frozen weights of 8 bits matter, those of 4 are the adapter's base") {
  const std::string yaml = R"(model_name_or_path: meta-llama/Meta-Llama-3-8B
per_device_train_batch_size: 1
cutoff_len: 2048
bf16: true
)";
  const std::string adapter = "finetuning_type: lora\nlora_rank: 8\n";
  const JobImport eight = imported("sft.yaml", yaml + adapter + "load_in_8bit: true\n");
  CHECK(fate_of(eight, "load_in_8bit") == "not modelled");
  const JobImport off = imported("sft.yaml", yaml + adapter + "load_in_8bit: false\n");
  CHECK(fate_of(off, "load_in_8bit") == "harmless");
  const JobImport four = imported("sft.yaml", yaml + adapter + "load_in_4bit: true\n");
  CHECK(job_of(four)["lora"]["base"] == "nf4");
  const JobImport bare = imported("sft.yaml", yaml + "load_in_4bit: true\n");
  REQUIRE(bare.remarks.size() == 1);
  CHECK(bare.remarks[0] == "weights of 4 bits without an adapter: taken as 16 bits");
}

TEST_CASE("import job: the format of gradients is the stack's, where it is another") {
  const auto stack_with = [](const std::string& arguments) {
    std::string text = kMegatron;
    const std::size_t at = text.find("--bf16");
    REQUIRE(at != std::string::npos);
    return job_of(imported("train.sh", text.insert(at, arguments + " ")))["stack"];
  };
  CHECK(stack_with("--grad-reduce-in-bf16").dump() ==
        R"({"preset":"megatron_core","gradients":"bf16","reduced_format":"bf16"})");
  CHECK(stack_with("--accumulate-allreduce-grads-in-fp32") == "megatron_core");
}

TEST_CASE("import job: every key has its fate, and one that nobody knows is named") {
  const JobImport found = imported("train.sh", kMegatron);
  CHECK(fate_of(found, "--tensor-model-parallel-size") == "used");
  CHECK(fate_of(found, "--lr") == "harmless");
  CHECK(fate_of(found, "--qk-layernorm") == "not modelled");
  CHECK(fate_of(found, "--frobnicate") == "unknown");
  REQUIRE(found.assumptions.size() == 1);
  CHECK(found.assumptions[0].path == "cluster.node");
  CHECK(found.assumptions[0].option == "--node NAME");
}

TEST_CASE(
    "import job: --set changes variables, keys and paths of the scenario; --nodes the nodes") {
  CHECK(job_of(imported("train.sh", kMegatron, {.set = {"NODES=32"}}))["cluster"]["nodes"] == 32);
  CHECK(job_of(imported("train.sh", kMegatron, {.nodes = 8}))["cluster"]["nodes"] == 8);
  const JobImport found =
      imported("train.sh", kMegatron, {.set = {"micro-batch-size=2", "batch.tokens=4096"}});
  CHECK(job_of(found)["batch"].dump() == R"({"sequences":128,"micro":2,"tokens":4096})");
}

TEST_CASE("import job: what --set says of the scenario is not assumed") {
  std::string text = kMegatron;
  const std::string_view words = "--vocab-size 128256";
  text.erase(text.find(words), words.size());
  const auto assumed = [](const JobImport& found) {
    return std::ranges::any_of(
        found.assumptions, [](const JobAssumption& one) { return one.path == "model.vocabulary"; });
  };
  CHECK(assumed(imported("train.sh", text)));
  const JobImport found = imported("train.sh", text, {.set = {"model.vocabulary=256000"}});
  CHECK_FALSE(assumed(found));
  CHECK(job_of(found)["model"]["vocabulary"] == 256000);
}

TEST_CASE("import job: widths that the GPUs do not hold are an error with the number that would") {
  CHECK(refusal("train.sh", kMegatron, {.set = {"NODES=3"}}) ==
        "train.sh: found 24 GPUs for TP 4 x CP 2 x PP 4; allowed: a multiple of 32: --set NODES=4 "
        "(or --nodes 4)");
}

TEST_CASE("import job: widths that no cluster has are an error before anything is multiplied") {
  CHECK(refusal("train.sh",
                "torchrun x.py --tensor-model-parallel-size 100000000 --num-layers 2 "
                "--pipeline-model-parallel-size 100000000 --hidden-size 64 "
                "--num-attention-heads 8\n") ==
        "train.sh: found widths of 100000000 GPUs; allowed: at most 16,000,000");
}

TEST_CASE("import job: what no kind of file has is refused in one line") {
  CHECK(refusal("a.sh", std::string("a\0b", 3)).starts_with("a.sh: found bytes that are no text;"));
  CHECK(refusal("a.sh", "").starts_with("a.sh: found no text;"));
  CHECK(refusal("a.sh", "echo hello\n").starts_with("a.sh: found no command with options;"));
  CHECK(refusal("a.yaml", "shopping: [milk]\n").starts_with("a.yaml: found keys of no such file"));
  CHECK(refusal("a.yaml", "model: {tensor_model_parallel_size: eight}\n") ==
        "a.yaml#/model.tensor_model_parallel_size: found \"eight\"; allowed: a whole number from 1 "
        "to 100000000");
  CHECK(refusal("a.toml", "[model\n").starts_with("a.toml: found at line 1, column "));
  CHECK(refusal("ds.json", R"({"train_batch_size": 8})")
            .starts_with("ds.json: found no model; allowed: --model NAME"));
}

TEST_CASE("import job: TorchTitan's groups, local batches and converters") {
  const JobImport found = imported("t.toml", R"(
[model]
name = "llama3"
flavor = "70B"
converters = ["float8"]
[training]
local_batch_size = 2
seq_len = 8192
[parallelism]
data_parallel_replicate_degree = 4
data_parallel_shard_degree = -1
tensor_parallel_degree = 8
[activation_checkpoint]
mode = "selective"
selective_ac_option = "op"
[compile]
enable = true
)",
                                   {.nodes = 32});
  const Json job = job_of(found);
  CHECK(job["model"] == "llama3_70b");
  CHECK(job["parallelism"]["data"] == 32);
  CHECK(job["parallelism"]["sharding"] == "zero3");
  CHECK(job["parallelism"]["shard_group"] == 8);
  CHECK(job["batch"]["sequences"] == 64);
  CHECK(job["precision"] == "fp8");
  CHECK(job["stack"] == "torchtitan");
}

TEST_CASE("import job: TorchTitan's pipeline of each accumulation step is not one long pipeline") {
  const std::string text = R"(
[model]
name = "llama3"
flavor = "70B"
[training]
local_batch_size = 8
global_batch_size = 1024
seq_len = 8192
[parallelism]
data_parallel_shard_degree = -1
tensor_parallel_degree = 8
pipeline_parallel_degree = 4
pipeline_parallel_schedule = "1F1B"
pipeline_parallel_microbatch_size = 1
)";
  const JobImport found = imported("t.toml", text, {.nodes = 16});
  CHECK(fate_of(found, "training.global_batch_size") == "not modelled");
  const auto key = std::ranges::find(found.keys, "training.global_batch_size",
                                     [](const KeyFinding& one) { return one.setting.key; });
  REQUIRE(key != found.keys.end());
  // 1024 sequences are 32 times 8 of each of four replicas; ramps of three stages are 3 / 8 of a
  // pipeline of eight micro batches, and 3 / 256 of the long one.
  CHECK(key->note ==
        "TorchTitan runs a pipeline of 8 micro batches for each of 32 accumulation steps; one of "
        "256 is simulated, whose ramps under 1F1B add 1.2 % and not 37.5 % to the step. Nearer is "
        "32 times the step of --set batch.sequences=32");
  // [training] is a section of the file, not only of a scenario.
  const JobImport once =
      imported("t.toml", text, {.nodes = 16, .set = {"training.global_batch_size=32"}});
  CHECK(fate_of(once, "training.global_batch_size") == "used");
  CHECK(job_of(once)["batch"]["sequences"] == 32);
}

TEST_CASE("import job: a class of Megatron-Bridge is the model, a file's sizes are changes to it") {
  const auto model_of = [](const std::string& name, const std::string& sizes) {
    return job_of(imported("b.yaml", "model:\n  _target_: megatron.bridge.models." + name +
                                         "\n  tensor_model_parallel_size: 2\n  seq_length: 8192\n" +
                                         sizes + "train:\n  global_batch_size: 64\n"))["model"];
  };
  const std::string same =
      "  num_layers: 80\n  hidden_size: 8192\n  ffn_hidden_size: 28672\n"
      "  num_attention_heads: 64\n  num_query_groups: 8\n";
  CHECK(model_of("llama.Llama3ModelProvider70B", "") == "llama3_70b");
  CHECK(model_of("llama.Llama3ModelProvider70B", same) == "llama3_70b");
  CHECK(model_of("llama.Llama3ModelProvider70B", "  num_layers: 40\n").dump() ==
        R"({"preset":"llama3_70b","layers":40})");
  // The class of a family without a size has its kind of layers.
  const Json plain = model_of("llama.LlamaModelProvider", same + "  vocab_size: 50000\n");
  CHECK(plain["gated"] == true);
  CHECK(plain["tied"] == false);
  CHECK(plain["biases"] == false);
  CHECK(plain["rotary"] == true);
}

TEST_CASE("import job: DeepSpeed's JSON and the script beside it make one job") {
  const test::TemporaryFolder folder;
  const std::string config = folder.write("ds.json", R"({"train_batch_size": "auto",
    "train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto",
    "zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu"}},
    "bf16": {"enabled": true}})");
  const std::string script = folder.write(
      "run.sh",
      "deepspeed --num_nodes 2 --num_gpus 8 sft.py "
      "--model_name_or_path meta-llama/Llama-3.1-8B-Instruct --deepspeed ds.json "
      "--per_device_train_batch_size 4 --gradient_accumulation_steps 2 --max_seq_length 2048 "
      "--gradient_checkpointing true\n");
  const Json job = job_of(import_job({config, script}, {}, test::presets()));
  CHECK(job["model"] == "llama3_8b");
  CHECK(job["cluster"]["nodes"] == 2);
  CHECK(job["parallelism"]["sharding"] == "zero3");
  CHECK(job["batch"].dump() == R"({"sequences":128,"micro":4,"tokens":2048})");
  CHECK(job["recompute"] == "full");
  CHECK(job["offload"].dump() == R"({"optimiser":1.0})");
  CHECK(job["stack"] == "huggingface_deepspeed_zero3");
}

TEST_CASE("import job: Megatron-DeepSpeed's experts stand in every second layer, one a token") {
  const std::string script = R"(#!/bin/bash
EP_SIZE=16
run_cmd="deepspeed pretrain_gpt.py --num-layers 24 --hidden-size 2048 --num-attention-heads 16 \
  --seq-length 2048 --max-position-embeddings 2048 --micro-batch-size 4 --global-batch-size 256 \
  --num-experts 64 --moe-expert-parallel-size ${EP_SIZE} --moe-train-capacity-factor 1.5 \
  --create-moe-param-group --fp16 --no-pipeline-parallel"
eval ${run_cmd}
)";
  const Json job = job_of(imported("train.sh", script));
  CHECK(job["parallelism"]["expert"] == 16);
  CHECK(job["model"]["experts"]["count"] == 64);
  CHECK(job["model"]["experts"]["per_token"] == 1);
  CHECK(job["model"]["experts"]["interval"] == 2);
  CHECK(job.dump().find("\"capacity_factor\":1.5") != std::string::npos);

  std::string other = script;
  other.replace(other.find(" --no-pipeline"), 0,
                " --topk 2 --expert-interval 1 --mlp-type residual "
                "--disable-moe-token-dropping");
  const JobImport found = imported("train.sh", other);
  CHECK(job_of(found)["model"]["experts"]["per_token"] == 2);
  CHECK_FALSE(job_of(found)["model"]["experts"].contains("interval"));
  CHECK(found.scenario.find("capacity_factor") == std::string::npos);
  CHECK(fate_of(found, "--mlp-type") == "not modelled");
}

TEST_CASE(
    "import job: optimisers, adapters and DeepSpeed's file as Trainer's arguments name them") {
  const std::string yaml = R"(model_name_or_path: meta-llama/Meta-Llama-3-8B
per_device_train_batch_size: 1
gradient_accumulation_steps: 2
cutoff_len: 2048
bf16: true
finetuning_type: lora
lora_rank: 8
)";
  const JobImport found =
      imported("sft.yaml", yaml +
                               "lora_target: q_proj,v_proj,down_proj\noptim: paged_adamw_8bit\n"
                               "deepspeed: examples/deepspeed/ds_z3_config.json\n");
  const Json job = job_of(found);
  CHECK(job["lora"]["modules"] == Json{"mlp_down", "qkv"});
  CHECK(job["stack"]["preset"] == "huggingface_deepspeed_zero3");
  CHECK(job["stack"]["optimiser_states"] == "int8");
  CHECK(job["parallelism"]["sharding"] == "zero3");
  CHECK(fate_of(found, "optim") == "used");
  REQUIRE_FALSE(found.remarks.empty());
  CHECK(found.remarks.back().find("ZeRO stage 3 by its name") != std::string::npos);

  const auto says_parts = [](const JobImport& one) {
    return std::ranges::any_of(one.remarks, [](const std::string& each) {
      return each.starts_with("PEFT gives each of q_proj");
    });
  };
  CHECK(says_parts(found));
  CHECK_FALSE(says_parts(imported("sft.yaml", yaml + "lora_target: o_proj,down_proj\n")));
  const JobImport frozen = imported("sft.yaml",
                                    "model_name_or_path: meta-llama/Meta-Llama-3-8B\n"
                                    "cutoff_len: 2048\nfinetuning_type: freeze\n");
  CHECK(fate_of(frozen, "finetuning_type") == "not modelled");

  const JobImport other = imported("sft.yaml", yaml +
                                                   "lora_target: all\noptim: adafactor\n"
                                                   "deepspeed: configs/deepspeed.json\n");
  CHECK_FALSE(job_of(other)["lora"].contains("modules"));
  CHECK(fate_of(other, "lora_target") == "used");
  CHECK(fate_of(other, "optim") == "not modelled");
  CHECK(fate_of(other, "deepspeed") == "not modelled");
  CHECK(fate_of(imported("sft.yaml", yaml + "lora_target: my_proj\n"), "lora_target") ==
        "not modelled");
}

TEST_CASE("import job: MaxText's mesh takes what GPUs are left") {
  const Json job = job_of(imported("m.yml", R"(
base_config: base.yml
model_name: llama3.1-8b
per_device_batch_size: 2
max_target_length: 4096
dcn_data_parallelism: 4
ici_fsdp_parallelism: -1
ici_tensor_parallelism: 2
remat_policy: full
quantization: nanoo_fp8
)",
                                   {.nodes = 4}));
  CHECK(job["model"] == "llama3_8b");
  CHECK(job["parallelism"]["tensor"] == 2);
  CHECK(job["parallelism"]["data"] == 16);
  CHECK(job["parallelism"]["shard_group"] == 4);
  CHECK(job["batch"].dump() == R"({"sequences":64,"micro":4,"tokens":4096})");
  CHECK(job["precision"] == "fp8");
}

TEST_CASE("import job: the file that MaxText's command names counts, below the command") {
  const test::TemporaryFolder folder;
  const auto with = [&](const std::string& words) {
    return import_job({folder.write("run.sh", "python3 -m MaxText.train " + words + "\n")},
                      {.nodes = 2}, test::presets());
  };
  const JobImport bare = with("MaxText/configs/base.yml model_name=llama2-7b run_name=a");
  CHECK(job_of(bare)["model"] == "llama2_7b");
  CHECK(job_of(bare)["recompute"] == "full");
  CHECK(job_of(bare)["batch"].dump() == R"({"sequences":192,"micro":12,"tokens":2048})");
  REQUIRE(bare.remarks.size() == 1);
  CHECK(bare.remarks[0].find("base.yml: not given") != std::string::npos);
  const JobImport said = with(
      "MaxText/configs/base.yml model_name=llama2-7b per_device_batch_size=2 "
      "remat_policy=minimal");
  CHECK(job_of(said)["batch"]["micro"] == 2);
  CHECK(job_of(said)["recompute"] != "full");
  const JobImport other = with("my.yml model_name=llama2-7b per_device_batch_size=2");
  REQUIRE(other.remarks.size() == 1);
  CHECK(other.remarks[0] == "my.yml: not given, and its keys count: give it too");
  (void)folder.write("my.yml",
                     "base_emb_dim: 2048\nbase_num_decoder_layers: 16\nbase_num_query_heads: 16\n"
                     "per_device_batch_size: 4\nmax_target_length: 4096\n"
                     "ici_fsdp_parallelism: -1\nici_tensor_parallelism: 1\n");
  const JobImport beside = with(
      "my.yml model_name=llama2-7b per_device_batch_size=2 ici_fsdp_parallelism=4 "
      "ici_tensor_parallelism=2 dcn_data_parallelism=2");
  CHECK(job_of(beside)["model"] == "llama2_7b");
  CHECK(job_of(beside)["batch"]["tokens"] == 4096);
  CHECK(job_of(beside)["parallelism"]["tensor"] == 2);
  CHECK(job_of(beside)["parallelism"]["shard_group"] == 4);
  CHECK(beside.remarks.front() == "my.yml: read, as run.sh names it");
}

TEST_CASE(
    "import job: Megatron-Bridge's provider is the model; NeMo's optimiser says what overlaps") {
  const Json bridge = job_of(imported("b.yaml", R"(
model:
  _target_: megatron.bridge.models.llama.Llama31ModelProvider405B
  seq_length: 8192
  tensor_model_parallel_size: 8
  pipeline_model_parallel_size: 4
  sequence_parallel: true
train: {global_batch_size: 128, micro_batch_size: 1}
ddp: {use_distributed_optimizer: true}
)",
                                      {.nodes = 8}));
  CHECK(bridge["model"] == "llama3_405b");
  CHECK(bridge["parallelism"]["sharding"] == "zero1");
  const Json nemo = job_of(imported("n.yaml", R"(
trainer: {num_nodes: 2, devices: 8, precision: bf16}
model:
  num_layers: 24
  hidden_size: 2048
  num_attention_heads: 16
  encoder_seq_length: 4096
  micro_batch_size: 2
  global_batch_size: 64
  peft: {peft_scheme: lora, lora_tuning: {adapter_dim: 16}}
  optim: {name: distributed_fused_adam, overlap_grad_sync: false}
)"));
  CHECK(nemo["lora"]["rank"] == 16);
  CHECK(nemo["stack"]["communication"]["overlap_gradients"] == false);
}

TEST_CASE("import job: Megatron's fp16 training has fp16 gradients, unless a flag says fp32") {
  const auto stack_with = [](const std::string& arguments) {
    std::string text = kMegatron;
    const std::size_t at = text.find("--bf16");
    REQUIRE(at != std::string::npos);
    text.replace(at, 6, arguments);
    return read_scenario("my.json", imported("train.sh", text).scenario, test::presets()).stack;
  };
  const StackSpec half = stack_with("--fp16");
  CHECK(half.main_gradient_bytes == 2);
  CHECK(half.communication.gradient_bytes == 2);
  const StackSpec single = stack_with("--fp16 --accumulate-allreduce-grads-in-fp32");
  CHECK(single.main_gradient_bytes == 4);
  CHECK(single.communication.gradient_bytes == 4);
}

TEST_CASE("import job: FSDP's SHARD_GRAD_OP keeps weights through a micro batch, and no longer") {
  struct Strategy {
    std::string name, number;
    bool reshards, of_nodes;
  };
  for (const Strategy& one :
       {Strategy{"full_shard", "1", true, false}, Strategy{"shard_grad_op", "2", false, false},
        Strategy{"hybrid_shard", "4", true, true},
        Strategy{"hybrid_shard_zero2", "5", false, true}}) {
    CAPTURE(one.name);
    const std::string accelerate =
        "distributed_type: FSDP\nnum_machines: 2\nnum_processes: 16\nmixed_precision: bf16\n"
        "fsdp_config:\n  fsdp_sharding_strategy: ";
    const std::string trainer =
        "model_name_or_path: meta-llama/Llama-3.1-8B\noutput_dir: out\nbf16: true\n"
        "per_device_train_batch_size: 1\nfsdp: \"";
    const JobImportOptions two{.nodes = 2, .model = "llama3_8b"};
    for (const JobImport& found :
         {imported("a.yaml", accelerate + one.name + "\n", two),
          imported("a.yaml", accelerate + one.number + "\n", two),
          imported("t.yaml", trainer + one.name + " auto_wrap\"\n", two)}) {
      const Json cut = job_of(found)["parallelism"];
      CHECK(cut["sharding"] == "zero3");
      CHECK(cut.value("reshard", true) == one.reshards);
      CHECK(cut.value("shard_group", 16) == (one.of_nodes ? 8 : 16));
    }
  }
}

TEST_CASE("import job: the Trainer's fsdp_config counts, with and without FSDP's prefix") {
  const std::string llama =
      "meta-llama/Meta-Llama-3-8B\nbf16: true\nfsdp: [full_shard, auto_wrap]\n";
  const std::string trainer = "output_dir: out\nmodel_name_or_path: " + llama;
  const std::string axolotl = "micro_batch_size: 4\nsequence_len: 4096\nbase_model: " + llama;
  for (const std::string prefix : {"", "fsdp_"}) {
    const std::string config = "fsdp_config:\n  " + prefix + "version: 2\n  " + prefix +
                               "activation_checkpointing: true\n  " + prefix +
                               "reshard_after_forward: false\n  " + prefix +
                               "offload_params: true\n  " + prefix + "forward_prefetch: true\n" +
                               "gradient_checkpointing: false\n";
    for (const std::string& file : {trainer, axolotl}) {
      CAPTURE(file + config);
      const JobImport found = imported("t.yaml", file + config, {.nodes = 2});
      const Json job = job_of(found);
      CHECK(job["recompute"] == "full");
      CHECK(job["parallelism"].value("reshard", true) == false);
      CHECK(job["offload"].dump() == R"({"optimiser":1.0,"parameters":true})");
      CHECK(job["stack"] == "huggingface_fsdp2");
      CHECK(fate_of(found, "fsdp_config." + prefix + "forward_prefetch") == "not modelled");
      CHECK(fate_of(found, "bf16") == "used");
    }
  }
  const JobImport bare = imported("t.yaml", trainer + "fsdp_config: fsdp.json\n", {.nodes = 2});
  CHECK(fate_of(bare, "fsdp_config") == "not modelled");
}

TEST_CASE("import job: a file beside the script that it sources is read, another is named") {
  const test::TemporaryFolder folder;
  (void)folder.write("env.sh", "TP=4\nSEQ=${SEQ:-8192}\n");
  const auto with = [&](const std::string& line, JobImportOptions options = {}) {
    return import_job(
        {folder.write("train.sh", line + "\npython pretrain_gpt.py --num-layers 32 "
                                         "--hidden-size 4096 --num-attention-heads 32 --bf16 "
                                         "--tensor-model-parallel-size ${TP:-1} --seq-length "
                                         "${SEQ:-2048} --micro-batch-size 1\n")},
        options, test::presets());
  };
  for (const char* const line :
       {"source env.sh", ". ./env.sh", "source \"$(dirname \"$0\")/env.sh\"",
        "D=$(cd \"$(dirname \"${BASH_SOURCE[0]}\")\" && pwd)\nsource $D/env.sh"}) {
    CAPTURE(line);
    const JobImport found = with(line);
    CHECK(job_of(found)["parallelism"]["tensor"] == 4);
    CHECK(job_of(found)["batch"]["tokens"] == 8192);
    CHECK(found.remarks.front() == "env.sh: read, as train.sh sources it");
  }
  CHECK(job_of(with("source env.sh", {.set = {"SEQ=4096"}}))["batch"]["tokens"] == 4096);
  for (const char* const line : {"source /opt/cluster.sh", "source ../env.sh", "source no.sh"}) {
    CAPTURE(line);
    const JobImport found = with(line);
    CHECK(job_of(found)["parallelism"]["tensor"] == 1);
    CHECK(found.remarks.front().find("its variables are unknown") != std::string::npos);
  }
  CHECK(with("source ~/.bashrc").remarks.empty());
}

TEST_CASE("import job: ZeRO stage 0 in bf16 shares states where the pipeline engine runs") {
  const auto with = [](const std::string& words) {
    return imported("train.sh",
                    "deepspeed pretrain_gpt.py --num-layers 24 --hidden-size 2048 "
                    "--num-attention-heads 16 --seq-length 2048 --max-position-embeddings 2048 "
                    "--micro-batch-size 4 --global-batch-size 256 --deepspeed --zero-stage 0 " +
                        words + "\n");
  };
  const JobImport engine = with("--bf16 --pipeline-model-parallel-size 2");
  CHECK(job_of(engine)["parallelism"]["sharding"] == "zero1");
  CHECK(job_of(engine)["stack"]["preset"] == "megatron_deepspeed");
  CHECK(job_of(engine)["stack"]["reduced_format"] == "fp32");
  REQUIRE(engine.remarks.size() == 1);
  CHECK(engine.remarks[0].find("BF16_Optimizer") != std::string::npos);
  CHECK(job_of(with("--bf16"))["parallelism"]["sharding"] == "zero1");
  CHECK(job_of(with("--fp16"))["parallelism"]["sharding"] == "none");
  CHECK(job_of(with("--fp16"))["stack"] == "megatron_deepspeed");
  const JobImport plain = with("--bf16 --no-pipeline-parallel");
  CHECK(job_of(plain)["parallelism"]["sharding"] == "none");
  REQUIRE(plain.remarks.size() == 1);
  CHECK(plain.remarks[0].find("parallelism.sharding=zero1") != std::string::npos);
}

TEST_CASE("import job: LLaMA-Factory checkpoints all layers unless it is told not to") {
  const auto recompute_with = [](const std::string& lines) {
    const std::string yaml = "model_name_or_path: meta-llama/Meta-Llama-3-8B\nbf16: true\n";
    return job_of(imported("t.yaml", yaml + lines))["recompute"];
  };
  CHECK(recompute_with("stage: sft\ncutoff_len: 4096\n") == "full");
  CHECK(recompute_with("cutoff_len: 4096\ntemplate: llama3\ngradient_checkpointing: false\n") ==
        "full");
  CHECK(recompute_with("max_seq_length: 4096\nfinetuning_type: full\n") == "full");
  const std::string off = "cutoff_len: 4096\ndisable_gradient_checkpointing: true\n";
  CHECK(recompute_with(off) != "full");
  CHECK(recompute_with(off + "gradient_checkpointing: true\n") == "full");
  CHECK(recompute_with("max_seq_length: 4096\n") != "full");  // the Trainer's own script
  // Scripts of others that have one of its names.
  CHECK(recompute_with("cutoff_len: 4096\n") != "full");
  CHECK(recompute_with("max_seq_length: 4096\nstage: sft\n") != "full");
  CHECK(recompute_with("cutoff_len: 4096\nstage: 2\n") != "full");
  const JobImport own = imported("t.yaml",
                                 "model_name_or_path: meta-llama/Meta-Llama-3-8B\nbf16: true\n"
                                 "max_seq_length: 4096\nstage: 2\n");
  CHECK(fate_of(own, "stage") == "not modelled");
}

TEST_CASE("import job: fused operators are the stack's where its preset is silent on them") {
  const std::string yaml =
      "model_name_or_path: meta-llama/Meta-Llama-3-8B\nbf16: true\nmax_seq_length: 4096\n";
  const Json liger = job_of(imported("t.yaml", yaml + "use_liger_kernel: true\n"))["stack"];
  CHECK(liger["chunked_cross_entropy"] == true);
  CHECK(liger["fused_norm"] == true);
  const Json compiled = job_of(imported("t.yaml", yaml + "torch_compile: true\n"))["stack"];
  CHECK(compiled["torch_compile"] == true);
  const Json merged = job_of(imported("t.yaml", yaml + "flash_attn_fuse_qkv: true\n"))["stack"];
  CHECK(merged["merged_qkv"] == true);
}

TEST_CASE("import job: Axolotl's products of 8 bits and Liger's operators, one by one") {
  const auto with = [](const std::string& lines) {
    return imported("a.yaml",
                    "base_model: meta-llama/Meta-Llama-3-8B\nsequence_len: 4096\n"
                    "micro_batch_size: 1\n" +
                        lines);
  };
  for (const char* const both : {"fp8: true\nbf16: auto\n", "bf16: auto\nfp8: true\n"}) {
    CHECK(job_of(with(both))["precision"] == "fp8");
  }
  CHECK(fate_of(with("bf16: auto\n"), "bf16") == "used");
  for (const char* const key : {"liger_rms_norm", "liger_rope", "liger_glu_activation",
                                "liger_fused_linear_cross_entropy", "cut_cross_entropy"}) {
    CAPTURE(key);
    CHECK(fate_of(with(std::string("bf16: auto\n") + key + ": true\n"), key) == "used");
  }
  const Json fused = job_of(with("bf16: auto\nliger_rope: true\n"));
  CHECK(fused["stack"]["fused_rope"] == true);
  CHECK(fate_of(with("bf16: auto\ns2_attention: true\n"), "s2_attention") == "not modelled");
}

TEST_CASE("import job: a key of TorchTitan's sections that nobody knows is told") {
  const JobImport found = imported("t.toml",
                                   "[model]\nname = \"llama3\"\nflavor = \"8B\"\n"
                                   "[training]\nlocal_batch_size = 1\nseq_len = 8192\n"
                                   "steps = 10\nnew_way_to_train = true\n");
  CHECK(fate_of(found, "training.new_way_to_train") == "unknown");
  CHECK(fate_of(found, "training.steps") == "harmless");
}

TEST_CASE("import job: TorchTitan's keys of every release are known") {
  const JobImport found =
      imported("t.toml",
               "[model]\nname = \"llama3\"\nflavor = \"8B\"\nprint_after_conversion = true\n"
               "[training]\nlocal_batch_size = 1\nseq_len = 8192\nmax_norm = 1.0\ngc_debug = true\n"
               "[training.dataloader]\nnum_workers = 4\n"
               "[experimental]\ncustom_import = \"a.b\"\nenable_compiled_autograd = true\n"
               "pipeline_parallel_microbatches = 8\n"
               "[activation_checkpoint]\nmode = \"full\"\nearly_stop = true\n"
               "determinism_check = \"default\"\n");
  for (const KeyFinding& key : found.keys) {
    CAPTURE(key.setting.key);
    CHECK(key.fate != KeyFate::unknown);
  }
  CHECK(fate_of(found, "experimental.pipeline_parallel_microbatches") == "used");
  CHECK(fate_of(found, "experimental.enable_compiled_autograd") == "not modelled");
}

TEST_CASE("import job: NeMo's fused operators are the stack's") {
  const JobImport found =
      imported("n.yaml",
               "model:\n  _target_: megatron.bridge.models.llama.Llama3ModelProvider70B\n"
               "  tensor_model_parallel_size: 2\n  seq_length: 8192\n"
               "  gradient_accumulation_fusion: false\n  apply_rope_fusion: false\n"
               "train:\n  global_batch_size: 64\n");
  CHECK(fate_of(found, "model.gradient_accumulation_fusion") == "used");
  CHECK(fate_of(found, "model.apply_rope_fusion") == "used");
  CHECK(job_of(found)["stack"]["gradient_accumulation_fusion"] == false);
}

TEST_CASE("import job: preference optimisation and RL of the Trainer's users are no fine-tuning") {
  const std::string yaml =
      "model_name_or_path: meta-llama/Meta-Llama-3-8B\nbf16: true\ncutoff_len: 4096\n";
  const auto fate_with = [&](const std::string& key, const std::string& value) {
    return fate_of(imported("t.yaml", yaml + key + ": " + value + "\n"), key);
  };
  CHECK(fate_with("stage", "sft") == "used");
  CHECK(fate_with("stage", "pt") == "used");
  CHECK(fate_with("use_vllm", "false") == "harmless");
  CHECK(fate_with("pref_beta", "0.1") == "harmless");
  using Line = std::array<std::string, 2>;
  for (const auto& [key, value] :
       {Line{"stage", "dpo"}, Line{"stage", "rm"}, Line{"rl", "dpo"}, Line{"num_generations", "8"},
        Line{"max_completion_length", "4096"}, Line{"use_vllm", "true"},
        Line{"vllm_mode", "colocate"}, Line{"ref_model", "meta-llama/Meta-Llama-3-8B"},
        Line{"reward_model", "my/reward"}}) {
    CAPTURE(key);
    CHECK(fate_with(key, value) == "not modelled");
  }
}

TEST_CASE("import job: Megatron's sharding strategy counts where its FSDP is on, in any order") {
  const std::string bridge = R"(
model: {_target_: megatron.bridge.models.llama.llama_provider.Llama3ModelProvider8B,
        tensor_model_parallel_size: 2, seq_length: 8192}
train: {micro_batch_size: 1, global_batch_size: 128}
ddp: {use_distributed_optimizer: true, data_parallel_sharding_strategy: optim_grads_params,
      use_megatron_fsdp: false}
dist: {use_megatron_fsdp: )";
  const JobImport off = imported("b.yaml", bridge + "false}\n", {.nodes = 2});
  CHECK(job_of(off)["parallelism"]["sharding"] == "zero1");
  CHECK(fate_of(off, "ddp.data_parallel_sharding_strategy") == "harmless");
  const JobImport on = imported("b.yaml", bridge + "true}\n", {.nodes = 2});
  CHECK(job_of(on)["parallelism"]["sharding"] == "zero3");
  CHECK(fate_of(on, "ddp.data_parallel_sharding_strategy") == "used");

  const auto megatron_with = [](const std::string& arguments) {
    std::string text = kMegatron;
    text.insert(text.find("--bf16"), arguments + " ");
    return imported("train.sh", text);
  };
  const JobImport bare = megatron_with("--data-parallel-sharding-strategy optim_grads_params");
  CHECK(job_of(bare)["parallelism"]["sharding"] == "zero1");
  CHECK(fate_of(bare, "--data-parallel-sharding-strategy") == "harmless");
  for (const char* const both :
       {"--use-megatron-fsdp --data-parallel-sharding-strategy optim_grads",
        "--data-parallel-sharding-strategy optim_grads --use-custom-fsdp"}) {
    CAPTURE(both);
    CHECK(job_of(megatron_with(both))["parallelism"]["sharding"] == "zero2");
  }
  const JobImport torch =
      megatron_with("--use-torch-fsdp2 --data-parallel-sharding-strategy optim_grads");
  CHECK(job_of(torch)["parallelism"]["sharding"] == "zero3");
}

TEST_CASE("import job: another optimiser than Adam is said to be, whoever writes it") {
  const auto megatron = [](const std::string& name) {
    std::string text = kMegatron;
    text.insert(text.find("--bf16"), "--optimizer " + name + " ");
    return fate_of(imported("train.sh", text), "--optimizer");
  };
  const auto deepspeed = [](const std::string& name) {
    const std::string text = R"({"train_micro_batch_size_per_gpu": 4,
      "zero_optimization": {"stage": 2}, "optimizer": {"type": ")";
    return fate_of(imported("ds.json", text + name + "\"}}", {.model = "llama3_8b"}),
                   "optimizer.type");
  };
  const auto titan = [](const std::string& lines) {
    const std::string text = "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[optimizer]\n";
    return imported("t.toml", text + lines + "\n[training]\nlocal_batch_size = 1\n");
  };
  const auto nemo = [](const std::string& name) {
    const std::string text = R"(
trainer: {num_nodes: 2, devices: 8, precision: bf16}
model: {micro_batch_size: 1, global_batch_size: 32, encoder_seq_length: 4096, optim: {name: )";
    return fate_of(imported("n.yaml", text + name + "}}\n", {.model = "llama3_8b"}),
                   "model.optim.name");
  };
  CHECK(megatron("adam") == "used");
  CHECK(megatron("muon") == "not modelled");
  CHECK(megatron("sgd") == "not modelled");
  CHECK(deepspeed("AdamW") == "used");
  CHECK(deepspeed("OneBitAdam") == "not modelled");
  CHECK(fate_of(titan("name = \"AdamW\""), "optimizer.name") == "used");
  CHECK(fate_of(titan("name = \"Muon\""), "optimizer.name") == "not modelled");
  CHECK(fate_of(titan("early_step_in_backward = true"), "optimizer.early_step_in_backward") ==
        "not modelled");
  CHECK(nemo("distributed_fused_adam") == "used");
  CHECK(nemo("adafactor") == "not modelled");
}

TEST_CASE("import job: layers in 16 bits and attention in 8 matter beside products of 8 bits") {
  const auto fates = [](const std::string& arguments) {
    std::string text = kMegatron;
    text.insert(text.find("--bf16"), arguments + " --num-layers-at-start-in-bf16 8 ");
    const JobImport found = imported("train.sh", text);
    return std::array{fate_of(found, "--first-last-layers-bf16"),
                      fate_of(found, "--num-layers-at-start-in-bf16"),
                      fate_of(found, "--fp8-dot-product-attention")};
  };
  using Fates = std::array<std::string, 3>;
  const std::string both = " --first-last-layers-bf16 --fp8-dot-product-attention";
  CHECK(fates("--fp8-format hybrid" + both) ==
        Fates{"not modelled", "not modelled", "not modelled"});
  CHECK(fates("--fp8-format hybrid") == Fates{"absent", "harmless", "absent"});
  CHECK(fates(both) == Fates{"harmless", "harmless", "harmless"});
}

TEST_CASE("import job: a batch that is not micro batch x accumulation x replicas is refused") {
  const auto with = [](const std::string& sequences, std::optional<int> nodes) {
    const std::string text = "{\"train_batch_size\": " + sequences + R"(,
      "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 8,
      "zero_optimization": {"stage": 2}})";
    return refusal("ds.json", text, {.nodes = nodes, .model = "llama3_8b"});
  };
  CHECK(with("512", 2) == "imported");
  CHECK(with("512", {}) == "imported");  // the nodes that make it so
  CHECK(with("256", 2) ==
        "ds.json: found a batch of 256 sequences, and 16 replicas that accumulate 8 micro batches "
        "of 4, which are 512; allowed: numbers that agree: another number of nodes (--nodes N), or "
        "--set train_batch_size=512");
}

TEST_CASE("import job: PyTorch's FSDP2 under Megatron overlaps by itself, and may keep weights") {
  const std::string keep = "--torch-fsdp2-no-reshard-after-forward";
  const auto megatron_with = [](const std::string& arguments) {
    std::string text = kMegatron;
    for (const std::string_view ddp :
         {"--use-distributed-optimizer ", "--overlap-grad-reduce ", "--overlap-param-gather "}) {
      text.erase(text.find(ddp), ddp.size());
    }
    text.insert(text.find("--bf16"), arguments + " ");
    return imported("train.sh", text);
  };
  const Json plain = job_of(megatron_with("--use-torch-fsdp2"));
  CHECK_FALSE(plain["stack"].contains("communication"));
  CHECK(plain["parallelism"].value("reshard", true) == true);
  const JobImport kept = megatron_with(keep + " --use-torch-fsdp2");
  CHECK(job_of(kept)["parallelism"]["reshard"] == false);
  CHECK(fate_of(kept, keep) == "used");
  // Without it nothing hides Megatron's own exchanges, and the flag does nothing.
  const JobImport off = megatron_with(keep);
  CHECK(job_of(off)["stack"]["communication"]["overlap_gradients"] == false);
  CHECK(fate_of(off, keep) == "harmless");
}

TEST_CASE("import job: NeMo's FSDP strategies are PyTorch's, and count where FSDP is on") {
  const auto nemo_with = [](const std::string& lines) {
    return imported("n.yaml", R"(
trainer: {num_nodes: 2, devices: 8, precision: bf16}
model:
  encoder_seq_length: 4096
  micro_batch_size: 2
  global_batch_size: 64
)" + lines,
                    {.model = "llama3_8b"});
  };
  const Json grad =
      job_of(nemo_with("  fsdp_sharding_strategy: grad\n  fsdp: true\n"))["parallelism"];
  CHECK(grad["sharding"] == "zero3");
  CHECK(grad["reshard"] == false);
  const Json hybrid =
      job_of(nemo_with("  fsdp: true\n  fsdp_sharding_strategy: hybrid\n"))["parallelism"];
  CHECK(hybrid["sharding"] == "zero3");
  CHECK(hybrid["shard_group"] == 8);
  CHECK_FALSE(hybrid.contains("reshard"));
  const JobImport off = nemo_with("  fsdp: false\n  fsdp_sharding_strategy: grad\n");
  CHECK(job_of(off)["parallelism"]["sharding"] == "none");
  CHECK(fate_of(off, "model.fsdp_sharding_strategy") == "harmless");
}

/// The note of the one key that says training is in FP32; else how many there are.
std::string full_precision_note(const JobImport& found) {
  std::vector<std::string> notes;
  for (const KeyFinding& key : found.keys) {
    if (key.note.find("bf16 is simulated") == std::string::npos) continue;
    CHECK(key.fate == KeyFate::unmodelled);
    notes.push_back(key.setting.key + ": " + key.note);
  }
  return notes.size() == 1 ? notes[0] : std::to_string(notes.size());
}

constexpr const char* kAccelerateNo =
    "compute_environment: LOCAL_MACHINE\ndistributed_type: MULTI_GPU\nnum_machines: 1\n"
    "num_processes: 8\nmixed_precision: 'no'\n";
constexpr const char* kTrainerPlain =
    "model_name_or_path: meta-llama/Meta-Llama-3-8B\nper_device_train_batch_size: 1\n"
    "cutoff_len: 2048\n";

TEST_CASE("import job: what trains in FP32 is said to be simulated in bf16") {
  const JobImport accelerate = imported("a.yaml", kAccelerateNo, {.model = "llama3_8b"});
  CHECK(full_precision_note(accelerate) == "mixed_precision: trains in fp32; bf16 is simulated");
  CHECK(job_of(accelerate)["precision"] == "bf16");
  const std::string unasked =
      "precision: nothing asks for bf16 or fp16: trains in fp32; bf16 is simulated";
  CHECK(full_precision_note(imported("t.yaml", kTrainerPlain)) == unasked);
  CHECK(full_precision_note(imported("t.yaml", kTrainerPlain + std::string("bf16: false\n"))) ==
        "bf16: trains in fp32; bf16 is simulated");
  CHECK(full_precision_note(
            imported("t.yaml", kTrainerPlain + std::string("torch_dtype: float32\n"))) == unasked);
  std::string megatron = kMegatron;
  megatron.erase(megatron.find("--bf16"), 6);
  CHECK(full_precision_note(imported("train.sh", megatron)) == unasked);
  CHECK(full_precision_note(imported("train.sh", megatron, {.set = {"precision=fp16"}})) == "0");
  CHECK(full_precision_note(
            imported("t.yaml", kTrainerPlain + std::string("deepspeed: my/settings.json\n"))) ==
        "precision: nothing asks for bf16 or fp16: trains in fp32 unless my/settings.json says "
        "otherwise; bf16 is simulated");
}

TEST_CASE("import job: a precision that any of the files asks for is no FP32") {
  const auto precision_of = [](const std::string& trainer, const std::string& other = {},
                               const std::string& name = "a.yaml") {
    const test::TemporaryFolder folder;
    std::vector<std::string> files{folder.write(name == "run.sh" ? name : "t.yaml", trainer)};
    if (!other.empty()) files.push_back(folder.write(name == "run.sh" ? "a.yaml" : name, other));
    const JobImport found = import_job(files, {.model = "llama3_8b"}, test::presets());
    return job_of(found)["precision"].get<std::string>() + " " + full_precision_note(found);
  };
  const std::string plain = kTrainerPlain, no = kAccelerateNo;
  CHECK(precision_of(plain + "fp16: true\n", no) == "fp16 0");
  CHECK(precision_of(plain + "pure_bf16: true\n") == "bf16 0");
  CHECK(precision_of(plain + "torch_dtype: float16\n") == "fp16 0");
  CHECK(precision_of(plain + "torch_dtype: auto\n") == "bf16 0");
  CHECK(precision_of(plain + "torch_dtype: float16\nbf16: true\n") == "bf16 0");
  CHECK(precision_of(plain, R"({"train_batch_size": 8, "fp16": {"enabled": true}})", "ds.json") ==
        "fp16 0");
  CHECK(precision_of(no, R"({"train_batch_size": 8, "fp16": {"enabled": true}})", "ds.json") ==
        "fp16 0");
  const std::string fp16 =
      "distributed_type: MULTI_GPU\nnum_machines: 1\nnum_processes: 8\nmixed_precision: fp16\n";
  CHECK(precision_of(plain + "torch_dtype: bfloat16\n", fp16) == "fp16 0");
  // The launcher's option goes before its file.
  const std::string run = "sft.py --model_name_or_path meta-llama/Llama-3.1-8B --max_length 2048\n";
  CHECK(precision_of("accelerate launch --config_file a.yaml " + run, fp16, "run.sh") == "fp16 0");
  CHECK(precision_of("accelerate launch --config_file a.yaml --mixed_precision no " + run, fp16,
                     "run.sh") == "bf16 --mixed_precision: trains in fp32; bf16 is simulated");
}

struct RealJob {
  const char* file;
  JobImportOptions options;
  const char* parallelism;
  const char* batch;
};

// What the files say, read by hand.
TEST_CASE(
    "import job: a variable that the script leaves unset is no value of the switch before it") {
  std::string text = kMegatron;
  text.insert(text.find("--micro-batch-size"), "${sp_options} ");
  const JobImport found = imported("train.sh", text);
  CHECK(job_of(found)["parallelism"]["sharding"] == "zero1");
  CHECK(std::ranges::count_if(found.remarks, [](const std::string& line) {
          return line.starts_with("sp_options is not in the file");
        }) == 1);
}

TEST_CASE("import job: Megatron-LM's old checkpointing method alone recomputes all") {
  std::string text = kMegatron;
  const std::string now = "--recompute-granularity selective";
  text.replace(text.find(now), now.size(), "--activations-checkpoint-method uniform");
  CHECK(job_of(imported("train.sh", text))["recompute"] == "full");
}

TEST_CASE("import job: --set fills the variables that a YAML takes from the environment") {
  const std::string yaml = R"(model:
  num_layers: 32
  hidden_size: 4096
  ffn_hidden_size: 14336
  num_attention_heads: 32
  tensor_model_parallel_size: ${TP}
train:
  micro_batch_size: 1
  global_batch_size: 16
)";
  const Json job = job_of(imported("run.yaml", yaml, {.set = {"TP=4"}}));
  CHECK(job["parallelism"]["tensor"] == 4);
}

TEST_CASE("import job: TorchTitan's older words for shards and products of 8 bits") {
  const std::string toml = R"([model]
name = "llama3"
flavor = "8B"
[training]
batch_size = 1
seq_len = 8192
data_parallel_degree = 16
enable_float8_linear = true
)";
  const Json job = job_of(imported("old.toml", toml, {.nodes = 2}));
  CHECK(job["precision"] == "fp8");
  CHECK(job["parallelism"]["data"] == 16);
  CHECK(job["parallelism"]["sharding"] == "zero3");
}

TEST_CASE("import job: real launch files say their layout" *
          doctest::skip(!test::has_real_file("launch"))) {
  const std::vector<RealJob> jobs{
      {"nemo/llama3_1_405b.yaml",
       {},
       R"({"tensor":8,"context":2,"pipeline":9,"data":32,"virtual_stages":7})",
       R"({"sequences":2016,"micro":1,"tokens":8192})"},
      {"nemo/175b.yaml",
       {},
       R"({"tensor":4,"pipeline":8,"data":32,"virtual_stages":6})",
       R"({"sequences":2048,"micro":1,"tokens":2048})"},
      {"nemo/mixtral_8x7b.yaml",
       {},
       R"({"tensor":1,"expert":8,"pipeline":4,"data":16,"virtual_stages":8})",
       R"({"sequences":256,"micro":1,"tokens":4096})"},
      {"torchtitan/llama3_405b.toml",
       {.nodes = 16},
       R"({"tensor":8,"data":16,"sharding":"zero3","tensor_overlap":"pieces"})",
       R"({"sequences":32,"micro":2,"tokens":8192})"},
      {"megatron/train_gpt3_175b_distributed.sh",
       {.set = {"NUM_NODES=16"}},
       R"({"tensor":8,"pipeline":16,"data":1})",
       R"({"sequences":1536,"micro":1,"tokens":2048})"},
      {"megatron/train_mixtral_8x7b_distributed.sh",
       {.nodes = 4},
       R"({"tensor":1,"expert":8,"pipeline":4,"data":8})",
       R"({"sequences":256,"micro":1,"tokens":4096})"},
      {"megatron/sbatch_mfsdp_deepseek_v3.sh",
       {.nodes = 32},
       R"({"expert":8,"data":256,"sharding":"zero3"})",
       R"({"sequences":2048,"micro":4,"tokens":4096})"},
      {"deepspeed/aws-ds_config.json",
       {.nodes = 2, .model = "llama2_7b", .tokens = 2048},
       R"({"data":16,"sharding":"none"})",
       R"({"sequences":256,"micro":16,"tokens":2048})"},
      {"accelerate/deepspeed_zero3.yaml",
       {.model = "llama3_8b"},
       R"({"data":8,"sharding":"zero3"})",
       R"({"sequences":8,"micro":1,"tokens":4096})"}};
  for (const RealJob& row : jobs) {
    CAPTURE(row.file);
    const JobImport found = import_job({test::real_file(std::string("launch/") + row.file)},
                                       row.options, test::presets());
    const Json parallelism = Json::parse(row.parallelism);
    for (const auto& [key, value] : parallelism.items()) {
      CAPTURE(key);
      CHECK(job_of(found)["parallelism"].value(key, Json()) == value);
    }
    CHECK(job_of(found)["batch"].dump() == row.batch);
    CHECK(std::ranges::none_of(found.keys,
                               [](const KeyFinding& key) { return key.fate == KeyFate::unknown; }));
    CHECK_NOTHROW(read_scenario("my.json", found.scenario, test::presets()));
  }
}

}  // namespace lockstep
