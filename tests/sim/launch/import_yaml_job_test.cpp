#include <algorithm>
#include <array>
#include <doctest/doctest.h>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "sim/launch/import_job.hpp"
#include "sim/scenario/read_scenario.hpp"
#include "tests/support/presets.hpp"
#include "tests/support/temporary_folder.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

JobImport launch_of(const std::string& name, const std::string& text,
                    const JobImportOptions& options = {}) {
  const test::TemporaryFolder folder;
  return import_job({folder.write(name, text)}, options, test::presets());
}

Json launched_scenario(const JobImport& found) { return Json::parse(found.scenario); }

std::string key_fate(const JobImport& found, std::string_view key) {
  for (const KeyFinding& one : found.keys) {
    if (one.setting.key == key) {
      return std::array{"used", "harmless", "not modelled", "unknown"}.at(
          static_cast<std::size_t>(one.fate));
    }
  }
  return "absent";
}

bool all_keys_known(const JobImport& found) {
  return std::ranges::none_of(found.keys,
                              [](const KeyFinding& key) { return key.fate == KeyFate::unknown; });
}

std::string launch_with(std::string text, std::string_view from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

// Numbers of GPT-NeoX-20B (arXiv:2204.06745, section 3), in the form of its files: braces, comments
// and a comma before the last brace.
constexpr const char* kNeox = R"({
  # layout
  "pipe-parallel-size": 4,
  "model-parallel-size": 2,
  "num-layers": 44, "hidden-size": 6144, "num-attention-heads": 64,
  "seq-length": 2048, "max-position-embeddings": 2048,
  "pos-emb": "rotary", "rotary_pct": 0.25, "no-weight-tying": true, "gpt_j_residual": true,
  "vocab-file": "20B_tokenizer.json", "tokenizer_type": "HFTokenizer",
  "zero_optimization": {"stage": 1, "overlap_comm": True, "reduce_bucket_size": 1260000000},
  "optimizer": {"type": "Adam", "params": {"lr": 0.97e-4, "betas": [0.9, 0.95]}},
  "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 32,
  "checkpoint-activations": true, "checkpoint-num-layers": 1, "partition-activations": false,
  "fp16": {"enabled": true, "loss_scale": 0},
  "train-iters": 150000, "log-interval": 2,
}
)";

constexpr const char* kNanotron = R"(general: {project: debug, run: one, seed: 42}
model:
  ddp_bucket_cap_mb: 25
  dtype: bfloat16
  make_vocab_size_divisible_by: 1
  init_method: {std: 0.02}
  model_config:
    hidden_size: 4096
    intermediate_size: 14336
    is_llama_config: true
    max_position_embeddings: 8192
    num_attention_heads: 32
    num_hidden_layers: 32
    num_key_value_heads: 8
    tie_word_embeddings: false
    vocab_size: 128256
optimizer:
  accumulate_grad_in_fp32: true
  optimizer_factory: {name: adamW, torch_adam_is_fused: true}
  zero_stage: 1
parallelism:
  dp: 4
  pp: 2
  tp: 4
  expert_parallel_size: 1
  pp_engine: 1f1b
  tp_mode: REDUCE_SCATTER
  tp_linear_async_communication: true
tokens: {batch_accumulation_per_replica: 8, micro_batch_size: 2, sequence_length: 4096}
)";

constexpr const char* kTorchtune = R"(output_dir: /tmp/out
tokenizer:
  _component_: torchtune.models.llama3.llama3_tokenizer
  max_seq_len: 2048
dataset: {_component_: torchtune.datasets.alpaca_dataset, packed: False}
model:
  _component_: torchtune.models.llama3_1.llama3_1_70b
checkpointer:
  _component_: torchtune.training.FullModelHFCheckpointer
  checkpoint_dir: ${output_dir}
batch_size: 2
gradient_accumulation_steps: 4
optimizer: {_component_: torch.optim.AdamW, lr: 2e-5, fused: True}
loss: {_component_: torchtune.modules.loss.LinearCrossEntropyLoss}
tensor_parallel_dim: 2
data_parallel_shard_dim: -1
data_parallel_replicate_dim: 2
enable_activation_checkpointing: True
fsdp_cpu_offload: True
dtype: bf16
compile: False
)";

}  // namespace

TEST_CASE("import job: GPT-NeoX's YAML in braces, with DeepSpeed's keys among its own") {
  const JobImport found = launch_of("20B.yml", kNeox, {.node = "dgx_a100_80gb", .nodes = 12});
  CHECK(all_keys_known(found));
  const Json job = launched_scenario(found);
  CHECK(job["model"] == "gpt_neox_20b");
  // 96 GPUs of which 8 are a copy: 12 replicas of 32 micro batches of 4.
  CHECK(job["parallelism"].dump() ==
        R"({"tensor":2,"pipeline":4,"data":12,"virtual_stages":1,"sequence":false,)"
        R"("sharding":"zero1"})");
  CHECK(job["batch"].dump() == R"({"sequences":1536,"micro":4,"tokens":2048})");
  CHECK(job["precision"] == "fp16");
  CHECK(job["recompute"] == "full");
  CHECK(job["stack"]["preset"] == "megatron_deepspeed");
  CHECK(key_fate(found, "zero_optimization.reduce_bucket_size") == "not modelled");
  CHECK(key_fate(found, "partition-activations") == "harmless");
  CHECK_NOTHROW(read_scenario("my.json", found.scenario, test::presets()));
}

TEST_CASE("import job: GPT-NeoX's MLP has the width that its class gives it") {
  const auto ffn = [](const std::string& keys) {
    const std::string text = R"({"num_layers": 4, "hidden_size": 1024, "num_attention_heads": 8,
      "pos_emb": "rotary", "precision": "bfloat16", "seq_length": 1024, )" +
                             keys + "}";
    return launched_scenario(launch_of("a.yml", text))["model"];
  };
  CHECK(ffn(R"("activation": "gelu")")["ffn"] == 4096);
  CHECK(ffn(R"("activation": "gelu")")["gated"] == false);
  // 8 / 3 of 1024 are 2730, up to a multiple of 256.
  CHECK(ffn(R"("mlp_type": "llama", "activation": "silu")")["ffn"] == 2816);
  CHECK(ffn(R"("mlp_type": "llama", "intermediate_size": 3072)")["ffn"] == 3072);
  // "intermediate_size" of a gated ParallelMLP is three times its width.
  const Json gated = ffn(R"("activation": "swiglu", "intermediate_size": 8448)");
  CHECK(gated["ffn"] == 2816);
  CHECK(gated["gated"] == true);
}

TEST_CASE("import job: GPT-NeoX's second file of paths, precision and flash attention") {
  const test::TemporaryFolder folder;
  const std::string text = launch_with(
      launch_with(kNeox, R"("enabled": true,)", R"("enabled": true, "type": "bfloat16",)"),
      R"("rotary_pct")", R"("attention_config": [[["flash"], 44]], "rotary_pct")");
  const std::string own = folder.write("20B.yml", text);
  const std::string local = folder.write(
      "local_setup.yml", R"({"data_path": "data", "hostfile": "/hosts", "launcher": "pdsh"})");
  const JobImport found =
      import_job({own, local}, {.node = "dgx_a100_80gb", .nodes = 12}, test::presets());
  CHECK(all_keys_known(found));
  CHECK(launched_scenario(found)["precision"] == "bf16");
  CHECK(launched_scenario(found)["stack"]["attention"] == "flash2");
}

TEST_CASE("import job: Nanotron's widths are all of the job, its vocabulary is not padded") {
  const JobImport found = launch_of("run.yaml", kNanotron);
  CHECK(all_keys_known(found));
  const Json job = launched_scenario(found);
  CHECK(job["model"] == "llama3_8b");
  CHECK(job["cluster"]["nodes"] == 4);
  CHECK(job["parallelism"].dump() ==
        R"({"tensor":4,"pipeline":2,"data":4,"virtual_stages":1,"sequence":true,)"
        R"("sharding":"zero1","schedule":"1f1b"})");
  CHECK(job["batch"].dump() == R"({"sequences":64,"micro":2,"tokens":4096})");
  CHECK(job["stack"] == "nanotron");
  CHECK(key_fate(found, "model.ddp_bucket_cap_mb") == "not modelled");
  const Json other = launched_scenario(launch_of(
      "run.yaml",
      launch_with(launch_with(kNanotron, "REDUCE_SCATTER", "ALL_REDUCE"), "1f1b", "afab")));
  CHECK(other["parallelism"]["sequence"] == false);
  CHECK(other["parallelism"]["schedule"] == "gpipe");
  CHECK_NOTHROW(read_scenario("my.json", found.scenario, test::presets()));
}

TEST_CASE("import job: Nanotron's experts lie among its replicas") {
  const std::string experts = "moe_config: {num_experts: 8, top_k: 2, layers: [-1]}";
  const JobImport found = launch_of(
      "run.yaml", launch_with(launch_with(kNanotron, "tie_word", experts + "\n    tie_word"),
                              "expert_parallel_size: 1", "expert_parallel_size: 4"));
  CHECK(all_keys_known(found));
  const Json job = launched_scenario(found);
  CHECK(job["model"]["experts"].dump() == R"({"count":8,"per_token":2,"ffn":14336})");
  CHECK(job["parallelism"]["expert"] == 4);
  CHECK(job["parallelism"]["expert_tensor"] == 1);
  CHECK(job["parallelism"]["data"] == 4);
}

TEST_CASE("import job: torchtune's builder is the model, its dimensions are FSDP's groups") {
  const JobImport found = launch_of("70B_full.yaml", kTorchtune, {.nodes = 2});
  CHECK(all_keys_known(found));
  const Json job = launched_scenario(found);
  CHECK(job["model"] == "llama3_70b");
  // 16 GPUs are 8 replicas of 2; two copies of the weights, each on 4 replicas.
  CHECK(job["parallelism"].dump() ==
        R"({"tensor":2,"pipeline":1,"data":8,"virtual_stages":1,"sequence":false,)"
        R"("sharding":"zero3","shard_group":4})");
  CHECK(job["batch"].dump() == R"({"sequences":64,"micro":2,"tokens":2048})");
  CHECK(job["offload"].dump() == R"({"optimiser":1.0,"parameters":true})");
  CHECK(job["recompute"] == "full");
  CHECK(job["stack"] == "torchtune");
  CHECK_NOTHROW(read_scenario("my.json", found.scenario, test::presets()));
}

TEST_CASE("import job: torchtune's adapters are in the builder's name and beside it") {
  const std::string builder = R"(torchtune.models.llama3_1.qlora_llama3_1_70b
  lora_attn_modules: ['q_proj', 'v_proj', 'output_proj']
  apply_lora_to_mlp: True
  apply_lora_to_output: False
  lora_rank: 16)";
  const std::string text =
      launch_with(kTorchtune, "torchtune.models.llama3_1.llama3_1_70b", builder);
  const Json job = launched_scenario(launch_of("qlora.yaml", text));
  CHECK(job["model"] == "llama3_70b");
  CHECK(job["lora"].dump() == R"({"rank":16,"base":"nf4",)"
                              R"("modules":["qkv","projection","mlp_up","mlp_down"]})");
  const JobImport other =
      launch_of("dpo.yaml", launch_with(kTorchtune, "torchtune.modules.loss.LinearCrossEntropyLoss",
                                        "torchtune.rlhf.loss.DPOLoss"));
  CHECK(key_fate(other, "loss._component_") == "not modelled");
}

TEST_CASE("import job: a command of torchtune takes back what its file says") {
  const test::TemporaryFolder folder;
  const std::string adapted =
      "lora_llama3_1_70b\n  quantize_base: True\n  lora_rank: 8\n"
      "  lora_attn_modules: ['q_proj', 'output_proj']\n  apply_lora_to_mlp: True";
  std::string text = launch_with(kTorchtune, "llama3_1_70b", adapted);
  text = launch_with(text, "compile: False", "compile: True");
  (void)folder.write("mine.yaml", text);
  (void)folder.write("eight.yaml", launch_with(kTorchtune, "dtype: bf16",
                                               "dtype: bf16\nenable_fp8_training: True"));
  const std::string command =
      "tune run --nnodes 4 --nproc_per_node 8 lora_finetune_distributed --config ";
  const auto imported = [&](const std::string& more) {
    const std::string script = folder.write("run.sh", command + more + "\n");
    return launched_scenario(import_job({script}, {}, test::presets()));
  };
  const Json as_filed = imported("mine.yaml");
  CHECK(as_filed.contains("offload"));
  CHECK(as_filed["lora"].dump() == R"({"rank":8,"base":"nf4",)"
                                   R"("modules":["qkv","projection","mlp_up","mlp_down"]})");
  const Json changed = imported(
      "mine.yaml compile=False fsdp_cpu_offload=False model.quantize_base=False "
      "model.apply_lora_to_mlp=False model.lora_attn_modules=['q_proj']");
  CHECK_FALSE(changed.contains("offload"));
  CHECK(changed["lora"].dump() == R"({"rank":8,"modules":["qkv"]})");
  CHECK(changed["stack"] != as_filed["stack"]);
  CHECK(imported("mine.yaml model.apply_lora_to_mlp=True")["lora"] == as_filed["lora"]);
  CHECK(imported("eight.yaml")["precision"] == "fp8");
  CHECK(imported("eight.yaml enable_fp8_training=False")["precision"] == "bf16");
}

TEST_CASE("import job: of several files of GPT-NeoX the last says whether there are stages") {
  const test::TemporaryFolder folder;
  const std::string none = folder.write(
      "none.yml", launch_with(kNeox, R"("pipe-parallel-size": 4)", R"("pipe-parallel-size": 0)"));
  const std::string four = folder.write("four.yml", kNeox);
  const JobImportOptions machine{.node = "dgx_a100_80gb", .nodes = 12};
  const Json staged = launched_scenario(import_job({none, four}, machine, test::presets()));
  CHECK(staged["parallelism"]["pipeline"] == 4);
  const Json flat = launched_scenario(import_job({four, none}, machine, test::presets()));
  CHECK(flat["parallelism"]["pipeline"] == 1);
}

TEST_CASE("import job: a command of torchtune or GPT-NeoX reads the files that it names") {
  const test::TemporaryFolder folder;
  (void)folder.write("mine.yaml", kTorchtune);
  const std::string script = folder.write(
      "run.sh",
      "tune run --nnodes 4 --nproc_per_node 8 full_finetune_distributed --config mine.yaml "
      "batch_size=1 tokenizer.max_seq_len=4096\n");
  const Json job = launched_scenario(import_job({script}, {}, test::presets()));
  CHECK(job["cluster"]["nodes"] == 4);
  CHECK(job["batch"].dump() == R"({"sequences":64,"micro":1,"tokens":4096})");
  (void)folder.write("20B.yml", kNeox);
  const std::string deepy =
      folder.write("neox.sh", "python ./deepy.py train.py -d . 20B.yml local_setup.yml\n");
  const JobImport found =
      import_job({deepy}, {.node = "dgx_a100_80gb", .nodes = 12}, test::presets());
  CHECK(launched_scenario(found)["parallelism"]["pipeline"] == 4);
  CHECK(std::ranges::any_of(found.remarks, [](const std::string& line) {
    return line.starts_with("local_setup.yml: not given");
  }));
}

TEST_CASE("import job: NeMo 2 has Megatron's keys under strategy, plugins and config") {
  const std::string yaml = R"(trainer:
  num_nodes: 2
  devices: 8
  strategy:
    _target_: nemo.lightning.MegatronStrategy
    tensor_model_parallel_size: 2
    pipeline_model_parallel_size: 2
    virtual_pipeline_model_parallel_size: 4
    context_parallel_size: 2
    sequence_parallel: true
    ddp: {overlap_grad_reduce: true, overlap_param_gather: false}
  plugins: {_target_: nemo.lightning.MegatronMixedPrecision, precision: bf16-mixed}
data: {seq_length: 8192, global_batch_size: 128, micro_batch_size: 1}
optim: {config: {optimizer: adam, use_distributed_optimizer: true}}
model:
  _target_: nemo.collections.llm.LlamaModel
  config: {_target_: nemo.collections.llm.gpt.model.llama.Llama3Config8B, seq_length: 8192}
)";
  const JobImport found = launch_of("nemo2.yaml", yaml);
  const Json job = launched_scenario(found);
  CHECK(job["model"] == "llama3_8b");
  CHECK(job["parallelism"].dump() ==
        R"({"tensor":2,"context":2,"pipeline":2,"data":2,"virtual_stages":4,"sequence":true,)"
        R"("sharding":"zero1"})");
  CHECK(job["batch"].dump() == R"({"sequences":128,"micro":1,"tokens":8192})");
  CHECK(job["precision"] == "bf16");
  CHECK(key_fate(found, "trainer.strategy.tensor_model_parallel_size") == "used");
}

TEST_CASE("import job: TorchTitan's older files say how many passes a pipeline has") {
  const std::string toml = R"([model]
name = "llama3"
flavor = "8B"
[training]
batch_size = 16
seq_len = 8192
[experimental]
pipeline_parallel_degree = 4
pipeline_parallel_schedule = "1F1B"
pipeline_parallel_microbatches = 8
)";
  const Json job = launched_scenario(launch_of("old.toml", toml, {.nodes = 1}));
  CHECK(job["batch"].dump() == R"({"sequences":32,"micro":2,"tokens":8192})");
  CHECK_THROWS_AS(launch_of("old.toml", launch_with(toml, "microbatches = 8", "microbatches = 7")),
                  InputError);
}

TEST_CASE("import job: options of Megatron-LM from 2020 to 2025 have a fate") {
  const JobImport found = launch_of(
      "old.sh",
      "torchrun --nnodes 1 --nproc_per_node 8 pretrain_gpt.py --num-layers 32 --hidden-size 4096 "
      "--num-attention-heads 32 --seq-length 2048 --model-parallel-size 4 --batch-size 2 "
      "--gradient-accumulation-fusion --distribute-checkpointed-activations --RMSNorm --bf16 "
      "--no-scatter-gather-tensors-in-pipeline --use-transformer-engine-op-fuser --nccl-ub "
      "--add-qkv-bias --decrease-batch-size-if-needed --no-fp8-wgrad --use-kitchen\n");
  CHECK(all_keys_known(found));
  CHECK(launched_scenario(found)["parallelism"]["tensor"] == 4);
  CHECK(launched_scenario(found)["batch"].dump() == R"({"sequences":4,"micro":2,"tokens":2048})");
  CHECK(key_fate(found, "--no-scatter-gather-tensors-in-pipeline") == "not modelled");
  CHECK(key_fate(found, "--gradient-accumulation-fusion") == "used");
}

// In the form of AMD-AGI/Primus, examples/megatron/configs.
constexpr const char* kPrimus = R"(work_group: ${PRIMUS_TEAM:amd}
exp_name: ${PRIMUS_EXP_NAME:run}
workspace: ./output
modules:
  pre_trainer:
    framework: megatron
    config: pre_trainer.yaml
    model: ${PRIMUS_MODEL:small_8B}.yaml
    overrides:
      stderr_sink_level: DEBUG
      micro_batch_size: 2
      global_batch_size: 128
      seq_length: ${PRIMUS_SEQ_LENGTH:4096}
      tensor_model_parallel_size: ${PRIMUS_TP:2}
      overlap_grad_reduce: true
      mtp_num_layers: null
      enable_primus_turbo: true
      use_turbo_attention: false
)";

TEST_CASE("import job: Primus merges its module, its model and what they extend") {
  const test::TemporaryFolder folder;
  folder.write("primus/configs/models/megatron/base.yaml",
               "num_layers: 4\nhidden_size: 4096\nffn_hidden_size: 14336\n"
               "num_attention_heads: 32\nswiglu: true\nadd_bias_linear: false\n"
               "group_query_attention: true\nnum_query_groups: 8\nmtp_num_layers: 1\n");
  folder.write("primus/configs/models/megatron/small_8B.yaml",
               "extends:\n  - base.yaml\nnum_layers: 32\nvocab_size: 128256\n"
               "untie_embeddings_and_output_weights: true\n");
  folder.write("primus/configs/modules/megatron/pre_trainer.yaml",
               "micro_batch_size: 1\nuse_distributed_optimizer: true\n");
  const std::string file = folder.write("examples/megatron/configs/run.yaml", kPrimus);
  JobImportOptions options;
  options.set = {"PRIMUS_TP=4"};
  const JobImport found = import_job({file}, options, test::presets());
  CHECK(all_keys_known(found));
  const Json scenario = launched_scenario(found);
  CHECK(scenario["parallelism"]["tensor"] == 4);
  CHECK(scenario["parallelism"]["sharding"] == "zero1");
  CHECK(scenario["batch"].dump() == R"({"sequences":128,"micro":2,"tokens":4096})");
  CHECK(scenario["model"].dump().find("32") != std::string::npos);
  CHECK(key_fate(found, "enable_primus_turbo") == "not modelled");
  CHECK(key_fate(found, "use_turbo_attention") == "harmless");  // switched off
  CHECK(key_fate(found, "workspace") == "harmless");
}

TEST_CASE("import job: Primus alone names its model, and another framework is one line") {
  const JobImport found = launch_of("run.yaml", launch_with(kPrimus, "small_8B", "llama3.1_8B"));
  CHECK(launched_scenario(found)["parallelism"]["tensor"] == 2);
  CHECK(launched_scenario(found)["parallelism"]["sharding"] == "zero1");
  CHECK(launched_scenario(found)["precision"] == "bf16");
  CHECK(launched_scenario(found)["model"].dump().find("llama3") != std::string::npos);
  CHECK_THROWS_WITH_AS(
      launch_of("run.yaml", launch_with(kPrimus, "framework: megatron", "framework: diffusion")),
      doctest::Contains("found \"diffusion\"; allowed: megatron"), InputError);
}

}  // namespace lockstep
