/// What launch files say of a job, in Lockstep's words. What nobody said is empty.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace lockstep {

/// Of the model's shape.
struct ModelSketch {
  std::string name;       ///< a preset's, or as the file names it: "meta-llama/Llama-3.1-8B"
  std::string hint;       ///< what the name may be taken from: a tokenizer, a recipe, a folder
  std::string flavor;     ///< TorchTitan's size of the model: "405B"
  std::string tokenizer;  ///< its kind: "GPT2BPETokenizer"
  std::string config;     ///< a Hugging Face config.json among the files
  std::optional<int> layers, hidden, ffn, heads, query_groups, head_dim, vocabulary, positions;
  std::optional<int> vocabulary_multiple;
  bool vocabulary_is_padded = false;  ///< as it stands, whatever the multiple
  std::optional<bool> grouped, gated, tied, biases, latent_attention;
  std::optional<bool> parallel, separate_norms;  ///< attention and MLP side by side
  std::string position_kind;
  std::optional<int> query_rank, key_value_rank, nope_dim, rope_dim, value_dim;
  std::optional<int> experts, expert_top, expert_ffn, expert_shared_ffn, expert_latent;
  std::optional<int> expert_interval, leading_dense, predicted_tokens, window;
  std::vector<int> expert_layers;  ///< 1 for each layer with experts
  std::string pattern;             ///< of hybrid models: M * - E for each layer
  std::optional<int> mamba_heads, mamba_head_dim, mamba_groups, mamba_state;
};

/// Of the job. Widths are numbers of GPUs.
struct JobSketch {  // NOLINT(clang-analyzer-optin.performance.Padding): one at a time
  ModelSketch model;

  std::string node;  ///< a preset's name
  std::optional<int> nodes, node_gpus, gpus;

  std::optional<int> tensor, pipeline, context, expert, expert_tensor, data;
  std::optional<int> virtual_stages, layers_per_virtual_stage;
  std::optional<int> shard, replicate;  ///< sizes of the data-parallel groups; shard -1: the rest
  int shard_least = 1;                  ///< of which what is left is a multiple
  std::optional<int> shard_group, shard_copies, fixed_node_group;
  std::optional<bool> sequence, reshard, expert_overlap, context_shards;
  std::string sharding, context_exchange, expert_dispatch, tensor_overlap, schedule;
  std::string embedding, output;
  std::vector<int> stage_layers;
  std::optional<int> first_layers, last_layers;
  bool distributed_optimizer = false;
  bool megatron_fsdp = false, torch_fsdp2 = false;
  bool torch_fsdp2_keeps_weights = false;  ///< no reshard after the forward pass, where it is on
  /// Their strategies, which do nothing where they are off.
  std::string megatron_fsdp_strategy, nemo_fsdp_strategy;

  std::optional<int> micro, sequences, accumulation, tokens;
  std::optional<double> per_device;          ///< MaxText: sequences of a GPU
  std::optional<int> local, pipeline_micro;  ///< TorchTitan: sequences of a replica, of a pass
  std::optional<int> pipeline_passes;        ///< and passes of a replica, in its older files
  bool packed = false;

  // GPT-NeoX, whose MLP follows from several keys.
  std::string neox_activation, neox_mlp, neox_precision;
  std::optional<int> neox_mlp_multiple;
  std::optional<double> neox_expansion;

  std::string precision;             ///< of products
  std::string accelerate_precision;  ///< its file's, where nothing else says one; "no": FP32
  std::string loaded_precision;      ///< of weights as they are loaded, where neither says one;
                                     ///< "auto": the checkpoint's
  std::string recompute;             ///< none, selective, full
  bool fsdp_checkpointing = false;   ///< by FSDP, whatever the model's own switch says
  bool llama_factory = false;        ///< which checkpoints all layers unless it is told not to
  std::set<std::string> llama_factory_words;     ///< keys that it has, and others may have
  std::optional<bool> no_default_checkpointing;  ///< LLaMA-Factory's switch, where it is written
  std::vector<std::string> recompute_modules;
  std::optional<int> recompute_layers;  ///< of a stage, or in a group of recompute_every_layer
  bool recompute_every_layer = false;   ///< Megatron's "uniform": all of them, group by group
  std::optional<double> recompute_products;

  std::optional<double> offload_optimizer;
  bool offload_parameters = false;
  std::optional<int> offload_layers;

  std::optional<double> capacity_factor;
  bool pad_to_capacity = false;
  std::optional<int> lora_rank;
  bool lora = false, lora_nf4 = false;
  std::vector<std::string> lora_modules;  ///< empty: all that have one

  std::string stack;
  std::optional<bool> compiled;
  std::optional<int> fsdp_version, zero_stage;
  bool no_pipeline_module = false;  ///< Megatron-DeepSpeed without DeepSpeed's pipeline engine
  std::string deepspeed_file;       ///< where DeepSpeed's settings stand, as another file says
  std::string settings_file;        ///< and those of Accelerate, or of TorchTitan
  std::string recipe;               ///< a recipe whose layout counts where no file says another
  std::string attention;            ///< its kernel: unfused, fused; empty: the stack's
  std::string optimiser_states;     ///< their format, where it is not the stack's
  std::map<std::string, bool> stack_switches;  ///< features of the stack that differ
  std::optional<bool> bf16_gradients;          ///< accumulated and reduced so; else in FP32
  std::map<std::string, bool> communication;   ///< its "communication"
  std::optional<double> training_tokens;

  std::string not_modelled;          ///< why the value of the key read last is not
  std::vector<std::string> remarks;  ///< what was understood otherwise than it is written
};

}  // namespace lockstep
