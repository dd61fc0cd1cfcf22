// Launch files as people write them: quoted commands, written scripts, recipes, files that a
// command names.
#include <array>
#include <doctest/doctest.h>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "sim/launch/import_job.hpp"
#include "tests/support/presets.hpp"
#include "tests/support/temporary_folder.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

JobImport imported_wild(const std::string& name, const std::string& text,
                        const JobImportOptions& options = {}) {
  const test::TemporaryFolder folder;
  return import_job({folder.write(name, text)}, options, test::presets());
}

std::string wild_fate(const JobImport& found, std::string_view key) {
  std::string fate = "absent";
  for (const KeyFinding& one : found.keys) {
    if (one.setting.key != key) continue;
    fate = std::array{"used", "harmless", "not modelled", "unknown"}.at(
        static_cast<std::size_t>(one.fate));
  }
  return fate;
}

bool has_wild_remark(const JobImport& found, std::string_view words) {
  for (const std::string& line : found.remarks) {
    if (line.find(words) != std::string::npos) return true;
  }
  return false;
}

const std::string kSmallModel =
    "--num-layers 24 --hidden-size 2048 --num-attention-heads 16 --seq-length 2048 "
    "--max-position-embeddings 2048 --micro-batch-size 1 --global-batch-size 64 --bf16 "
    "--vocab-size 50257 ";

}  // namespace

TEST_CASE("import job: a quoted command keeps all options of the arrays that it joins") {
  const JobImport found =
      imported_wild("train.sh", "D=(--nproc_per_node 8 --nnodes 2)\nM=(" + kSmallModel +
                                    ")\nsrun bash -c \"torchrun ${D[*]} pretrain_gpt.py ${M[*]} "
                                    "--tensor-model-parallel-size 4\"\n");
  const Json job = Json::parse(found.scenario);
  CHECK(job["cluster"]["nodes"] == 2);
  CHECK(job["parallelism"]["tensor"] == 4);
  CHECK(wild_fate(found, "--num-layers") == "used");
}

TEST_CASE("import job: a script that a script writes is read, and so are redirections and arrays") {
  const JobImport written = imported_wild(
      "submit.sh",
      "for TP in 4 8; do\ncat <<EOT > job_$TP.sbatch\n#!/bin/bash\n#SBATCH -N 16\n"
      "srun torchrun --nproc-per-node=8 pretrain_gpt.py " +
          kSmallModel + "--tensor-model-parallel-size $TP\nEOT\nsbatch job_$TP.sbatch\ndone\n");
  CHECK(Json::parse(written.scenario)["parallelism"]["tensor"] == 4);
  CHECK(Json::parse(written.scenario)["cluster"]["nodes"] == 16);

  const JobImport evaluated =
      imported_wild("run.sh",
                    "declare -A CFG=([pp]=2)\nCFG[tp]=4\n"
                    "cmd=\"deepspeed --num_nodes 2 --num_gpus 8 pretrain_gpt.py " +
                        kSmallModel +
                        "--tensor-model-parallel-size ${CFG[tp]} --pipeline-model-parallel-size "
                        "${CFG[pp]} &> ${OUT}/log\"\necho $cmd\neval $cmd\n");
  const Json job = Json::parse(evaluated.scenario);
  CHECK(job["parallelism"]["tensor"] == 4);
  CHECK(job["parallelism"]["pipeline"] == 2);
}

TEST_CASE("import job: variables that mpirun hands on are no keys") {
  const JobImport found = imported_wild(
      "run.sh", "mpirun -np 16 -x NCCL_IB_HCA=mlx5 -mca btl ^openib python pretrain_gpt.py " +
                    kSmallModel + "\n");
  CHECK(wild_fate(found, "NCCL_IB_HCA") == "absent");
  CHECK(wild_fate(found, "-x") == "harmless");
  CHECK(Json::parse(found.scenario)["cluster"]["nodes"] == 2);
}

TEST_CASE("import job: the file that accelerate launch names counts, or is said to be missing") {
  const test::TemporaryFolder folder;
  (void)folder.write("fsdp.yaml",
                     "distributed_type: FSDP\nmixed_precision: bf16\nfsdp_config:\n"
                     "  fsdp_sharding_strategy: SHARD_GRAD_OP\nnum_processes: 8\n");
  const std::string command =
      " --num_processes 16 --num_machines 2 sft.py --model_name_or_path "
      "meta-llama/Meta-Llama-3-8B --per_device_train_batch_size 1 --max_length 4096\n";
  const JobImport beside =
      import_job({folder.write("a.sh", "accelerate launch --config_file ./fsdp.yaml" + command)},
                 {}, test::presets());
  const Json job = Json::parse(beside.scenario);
  CHECK(job["parallelism"]["sharding"] == "zero3");
  CHECK(job["parallelism"]["reshard"] == false);
  CHECK(job["cluster"]["nodes"] == 2);

  const JobImport absent =
      imported_wild("b.sh", "accelerate launch --config_file=x/deepspeed_zero3.yaml" + command);
  CHECK(Json::parse(absent.scenario)["parallelism"]["sharding"] == "zero3");
  CHECK(wild_fate(absent, "--config_file") == "not modelled");
  CHECK(has_wild_remark(absent, "ZeRO stage 3 by its name"));
  const JobImport fsdp =
      imported_wild("c.sh", "accelerate launch --config_file fsdp2.yaml" + command);
  CHECK(Json::parse(fsdp.scenario)["stack"] == "huggingface_fsdp2");
  CHECK(Json::parse(fsdp.scenario)["parallelism"]["sharding"] == "zero3");
}

TEST_CASE("import job: options of accelerate launch are those of its file") {
  const JobImport found = imported_wild(
      "a.sh",
      "accelerate launch --use_fsdp --fsdp_version 2 --fsdp_reshard_after_forward false "
      "--fsdp_activation_checkpointing true --mixed_precision bf16 --num_processes 8 sft.py "
      "--model_name_or_path meta-llama/Meta-Llama-3-8B --per_device_train_batch_size 1 "
      "--max_length 4096\n");
  const Json job = Json::parse(found.scenario);
  CHECK(job["parallelism"]["sharding"] == "zero3");
  CHECK(job["parallelism"]["reshard"] == false);
  CHECK(job["recompute"] == "full");
  CHECK(job["stack"] == "huggingface_fsdp2");
}

TEST_CASE("import job: Axolotl's widths, and keys of LLaMA-Factory and TRL") {
  const JobImport found = imported_wild(
      "axolotl.yml",
      "base_model: meta-llama/Meta-Llama-3-8B\nmicro_batch_size: 1\nsequence_len: 8192\n"
      "bf16: true\nfsdp_version: 2\nfsdp_config:\n  reshard_after_forward: true\n"
      "context_parallel_size: 4\ndp_shard_size: 2\nneat_packing: true\nplugins:\n  - x\n"
      "activation_offloading: true\n");
  const Json job = Json::parse(found.scenario);
  CHECK(job["parallelism"]["context"] == 4);
  CHECK(job["parallelism"]["context_exchange"] == "ring");
  CHECK(wild_fate(found, "dp_shard_size") == "used");
  CHECK(wild_fate(found, "neat_packing") == "used");
  CHECK(wild_fate(found, "plugins") == "harmless");
  CHECK(wild_fate(found, "activation_offloading") == "not modelled");
}

TEST_CASE("import job: a recipe names the model, and what it sets itself is said to be unread") {
  const JobImport bridge = imported_wild(
      "bridge.sh",
      "torchrun --nproc_per_node=8 --nnodes=4 run_recipe.py --recipe llama3_8b_pretrain_config "
      "train.global_batch_size=512 train.micro_batch_size=1 model.tensor_model_parallel_size=2\n");
  CHECK(Json::parse(bridge.scenario)["model"] == "llama3_8b");
  CHECK(has_wild_remark(bridge, "recipe llama3_8b_pretrain_config"));
  CHECK(has_wild_remark(bridge, "parallelism.pipeline"));

  const JobImport nemo = imported_wild(
      "nemo.sh",
      "nemo llm pretrain --factory \"llama3_70b(num_nodes=16)\" trainer.devices=8 "
      "trainer.strategy.tensor_model_parallel_size=4 data.global_batch_size=512 -y\n");
  const Json job = Json::parse(nemo.scenario);
  CHECK(job["model"] == "llama3_70b");
  CHECK(job["cluster"]["nodes"] == 16);
  CHECK(wild_fate(nemo, "-y") == "harmless");

  const JobImport titan = imported_wild(
      "titan.sh",
      "torchrun --nproc_per_node=8 --nnodes=4 -m torchtitan.train --module llama3 --config "
      "llama3_70b --parallelism.tensor_parallel_degree 8 --training.local_batch_size 4\n");
  CHECK(Json::parse(titan.scenario)["model"] == "llama3_70b");
}

TEST_CASE("import job: the file that TorchTitan's command names counts, below the command") {
  const test::TemporaryFolder folder;
  (void)folder.write("8b.toml",
                     "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nseq_len = 8192\n"
                     "local_batch_size = 1\n[parallelism]\ntensor_parallel_degree = 2\n");
  const std::string command =
      "torchrun --nproc_per_node=8 --nnodes=2 -m torchtitan.train --job.config_file 8b.toml "
      "--parallelism.tensor_parallel_degree 4\n";
  const JobImport found = import_job({folder.write("run.sh", command)}, {}, test::presets());
  const Json job = Json::parse(found.scenario);
  CHECK(job["model"] == "llama3_8b");
  CHECK(job["parallelism"]["tensor"] == 4);
  CHECK(job["batch"]["tokens"] == 8192);

  const JobImport absent = imported_wild("run.sh", command, {.model = "llama3_8b"});
  CHECK(wild_fate(absent, "--job.config_file") == "not modelled");
}

TEST_CASE("import job: a mesh of MaxText needs the product of all of its axes") {
  const JobImport found =
      imported_wild("job.yaml",
                    "model_name: llama3-8b\nper_device_batch_size: 1\nmax_target_length: 4096\n"
                    "ici_fsdp_parallelism: 8\ndcn_fsdp_parallelism: -1\ndcn_data_parallelism: 4\n");
  const Json job = Json::parse(found.scenario);
  CHECK(job["cluster"]["nodes"] == 4);
  CHECK(job["parallelism"]["shard_group"] == 8);
  const JobImport experts = imported_wild(
      "run.sh",
      "python3 -m MaxText.train base.yml model_name=mixtral-8x7b ici_expert_parallelism=8 "
      "dcn_fsdp_parallelism=4 per_device_batch_size=1 max_target_length=4096\n");
  CHECK(Json::parse(experts.scenario)["cluster"]["nodes"] == 4);
}

TEST_CASE("import job: LLM Foundry's YAML has sizes, batch and FSDP") {
  const JobImport found = imported_wild(
      "mpt-7b.yaml",
      "parameters:\n  max_seq_len: 2048\n  model:\n    name: mpt_causal_lm\n    d_model: 4096\n"
      "    n_heads: 32\n    n_layers: 32\n    expansion_ratio: 4\n    vocab_size: 50368\n"
      "    no_bias: true\n    attn_config:\n      attn_impl: flash\n      alibi: true\n"
      "  global_train_batch_size: 1024\n  device_train_microbatch_size: 8\n  precision: amp_bf16\n"
      "  fsdp_config:\n    sharding_strategy: FULL_SHARD\n    activation_checkpointing: false\n"
      "  train_loader:\n    name: text\ncompute:\n  gpus: 16\n");
  const Json job = Json::parse(found.scenario);
  CHECK(job["cluster"]["nodes"] == 2);
  CHECK(job["parallelism"]["sharding"] == "zero3");
  CHECK(job["batch"].dump() == R"({"sequences":1024,"micro":8,"tokens":2048})");
  CHECK(job["recompute"] == "none");
  CHECK(job["stack"] == "huggingface_fsdp1");
  CHECK(wild_fate(found, "model.d_model") == "used");
  CHECK(wild_fate(found, "model.attn_config.alibi") == "used");
}

TEST_CASE("import job: Levanter's YAML is LLaMA's form over a mesh") {
  const JobImport found = imported_wild(
      "llama.yaml",
      "model:\n  type: llama\n  seq_len: 4096\n  hidden_dim: 4096\n  intermediate_dim: 11008\n"
      "  num_layers: 32\n  num_heads: 32\n  num_kv_heads: 32\n"
      "trainer:\n  mp: p=f32,c=bfloat16\n  train_batch_size: 64\n  per_device_parallelism: 4\n"
      "  model_axis_size: 2\noptimizer:\n  learning_rate: 1e-4\n",
      {.nodes = 2});
  const Json job = Json::parse(found.scenario);
  CHECK(job["parallelism"]["tensor"] == 2);
  CHECK(job["parallelism"]["data"] == 8);
  CHECK(job["parallelism"]["sharding"] == "zero3");
  CHECK(job["batch"]["sequences"] == 64);
  CHECK(job["precision"] == "bf16");
  CHECK(wild_fate(found, "model.hidden_dim") == "used");
}

TEST_CASE(
    "import job: commands of Levanter and LLM Foundry say more than the YAML that they name") {
  const test::TemporaryFolder folder;
  const auto both = [&](const std::string& yaml, const std::string& command) {
    return import_job({folder.write("c.yaml", yaml), folder.write("run.sh", command)}, {.nodes = 1},
                      test::presets());
  };
  const JobImport levanter = both(
      "model:\n  type: llama\n  seq_len: 4096\n  hidden_dim: 4096\n  intermediate_dim: 11008\n"
      "  num_layers: 32\n  num_heads: 32\n  num_kv_heads: 32\n"
      "trainer:\n  mp: p=f32,c=bfloat16\n  train_batch_size: 64\n",
      "python -m levanter.main.train_lm --config_path conf/c.yaml --trainer.train_batch_size 32\n");
  CHECK(Json::parse(levanter.scenario)["batch"]["sequences"] == 32);
  CHECK(wild_fate(levanter, "--config_path") == "harmless");
  const JobImport foundry = both(
      "max_seq_len: null\nmodel:\n  name: mpt_causal_lm\n  d_model: 2048\n  n_heads: 16\n"
      "  n_layers: 20\n  expansion_ratio: 4\n  max_seq_len: 2048\n  vocab_size: 50368\n"
      "global_train_batch_size: 64\ndevice_train_microbatch_size: 4\nprecision: amp_bf16\n"
      "fsdp_config:\n  sharding_strategy: FULL_SHARD\n",
      "composer -n 8 train/train.py c.yaml global_train_batch_size=32\n");
  const Json job = Json::parse(foundry.scenario);
  CHECK(job["batch"]["sequences"] == 32);
  CHECK(job["batch"]["tokens"] == 2048);
  CHECK(job["parallelism"]["data"] == 8);
  CHECK(job["model"]["learned_positions"] == true);
}

TEST_CASE("import job: Colossal-AI's widths, and a replica's batch in micro batches") {
  const JobImport found = imported_wild(
      "run.sh",
      "colossalai run --nproc_per_node 8 --hostfile hosts pretrain.py -c llama2-7b --plugin 3d "
      "--tp 2 --pp 2 --zero 1 -b 16 --mbs 4 --max_length 4096 -g -x --mixed_precision bf16\n",
      {.nodes = 2, .model = "llama2_7b"});
  const Json job = Json::parse(found.scenario);
  CHECK(job["parallelism"]["tensor"] == 2);
  CHECK(job["parallelism"]["pipeline"] == 2);
  CHECK(job["parallelism"]["data"] == 4);
  CHECK(job["parallelism"]["sharding"] == "zero1");
  CHECK(job["batch"].dump() == R"({"sequences":64,"micro":4,"tokens":4096})");
  CHECK(job["recompute"] == "full");
}

TEST_CASE("import job: fine-tuning of OpenRLHF and verl has their batch and sharding") {
  const JobImport rlhf = imported_wild(
      "sft.sh",
      "read -r -d '' training_commands <<EOF\nopenrlhf.cli.train_sft \\\n  --max_len 2048 \\\n"
      "  --train_batch_size 256 --micro_train_batch_size 2 --zero_stage 2 --bf16 \\\n"
      "  --pretrain meta-llama/Meta-Llama-3-8B --gradient_checkpointing\nEOF\n"
      "deepspeed --module $training_commands\n");
  const Json job = Json::parse(rlhf.scenario);
  CHECK(job["model"] == "llama3_8b");
  CHECK(job["parallelism"]["sharding"] == "zero2");
  CHECK(job["batch"].dump() == R"({"sequences":256,"micro":2,"tokens":2048})");
  CHECK(job["recompute"] == "full");

  const JobImport verl = imported_wild(
      "verl.sh",
      "torchrun --nnodes=1 --nproc_per_node=8 -m verl.trainer.fsdp_sft_trainer "
      "data.micro_batch_size_per_gpu=4 data.train_batch_size=256 data.max_length=1024 "
      "model.partial_pretrain=meta-llama/Meta-Llama-3-8B model.strategy=fsdp2 "
      "model.enable_gradient_checkpointing=True ulysses_sequence_parallel_size=2 optim.lr=1e-4\n");
  const Json tuned = Json::parse(verl.scenario);
  CHECK(tuned["model"] == "llama3_8b");
  CHECK(tuned["parallelism"]["context"] == 2);
  CHECK(tuned["parallelism"]["context_exchange"] == "all_to_all");
  CHECK(tuned["parallelism"]["sharding"] == "zero3");
  CHECK(tuned["stack"]["preset"] == "huggingface_fsdp2");
}

TEST_CASE("import job: slime's trainer says nodes and GPUs of its own, and packs tokens") {
  const JobImport found = imported_wild(
      "train.sh", "M=(" + kSmallModel +
                      ")\nray job submit --address=\"http://127.0.0.1:8265\" -- python3 train.py "
                      "--actor-num-nodes 2 --actor-num-gpus-per-node 4 --colocate "
                      "--use-dynamic-batch-size --max-tokens-per-gpu 9216 ${M[@]}\n");
  const Json job = Json::parse(found.scenario);
  CHECK(job["parallelism"]["data"] == 8);
  CHECK(wild_fate(found, "--actor-num-nodes") == "used");
  CHECK(wild_fate(found, "--address") == "harmless");
  CHECK(wild_fate(found, "--colocate") == "not modelled");
  CHECK(wild_fate(found, "--max-tokens-per-gpu") == "not modelled");
}

TEST_CASE("import job: TorchTitan of 2024 has asynchronous tensor parallelism under training") {
  const JobImport found = imported_wild(
      "train.toml",
      "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nbatch_size = 1\nseq_len = 8192\n"
      "tensor_parallel_degree = 8\nenable_async_tensor_parallel = true\n");
  CHECK(Json::parse(found.scenario)["parallelism"]["tensor_overlap"] == "pieces");
}

TEST_CASE("import job: null and ~ in a command of torchtune take away what its file says") {
  const test::TemporaryFolder folder;
  const std::string yaml =
      folder.write("8B.yaml",
                   "model:\n  _component_: torchtune.models.llama3_1.llama3_1_8b\nbatch_size: 2\n"
                   "tokenizer:\n  max_seq_len: 4096\ntensor_parallel_dim: 2\ncompile: true\n"
                   "enable_activation_checkpointing: true\n");
  const auto taken = [&](const std::string& words) {
    const std::string script = folder.write(
        "run.sh",
        "tune run --nproc_per_node 8 full_finetune_distributed --config 8B " + words + "\n");
    return Json::parse(import_job({yaml, script}, {}, test::presets()).scenario);
  };
  CHECK(taken("")["parallelism"]["tensor"] == 2);
  CHECK(taken("tensor_parallel_dim=null")["parallelism"]["tensor"] == 1);
  CHECK(taken("~tensor_parallel_dim")["parallelism"]["tensor"] == 1);
  CHECK(taken("enable_activation_checkpointing=null")["recompute"] == "none");
}

}  // namespace lockstep
