// Keys of GPT-NeoX's YAML beside those of DeepSpeed, which it has too
// (EleutherAI/gpt-neox, megatron/neox_arguments/neox_args.py).
#include <algorithm>
#include <array>

#include "sim/launch/key_table.hpp"

namespace lockstep {
namespace neox_file {
namespace {

using J = JobSketch;
using M = ModelSketch;
constexpr KeyFate kUsed = KeyFate::used, kHarmless = KeyFate::harmless,
                  kMatters = KeyFate::unmodelled;

/// 0 is a model without DeepSpeed's pipeline engine, 1 one with it and a single stage.
void take_stages(J& job, const Setting& from) {
  const int stages = from.count(0);
  job.no_pipeline_module = stages == 0;
  job.pipeline = std::max(1, stages);
}
void take_position(J& job, const Setting& from) {
  const std::string text = lower(from.text());
  if (text == "learned") {
    job.model.position_kind = "learned_absolute";
  } else {
    job.model.position_kind = text == "rotary" ? "rope" : text;
  }
}
void take_parallel_blocks(J& job, const Setting& from) { job.model.parallel = from.flag(); }
void take_shared_norm(J& job, const Setting& from) { job.model.separate_norms = !from.flag(); }
void take_activation(J& job, const Setting& from) { job.neox_activation = lower(from.text()); }
void take_mlp_type(J& job, const Setting& from) { job.neox_mlp = lower(from.text()); }
void take_multiple(J& job, const Setting& from) { job.neox_mlp_multiple = from.count(); }
void take_expansion(J& job, const Setting& from) {
  if (from.is_null()) return;
  job.neox_expansion = from.number();
  if (*job.neox_expansion <= 0 || *job.neox_expansion > 1000) from.fail("a number above 0");
}
void take_kv_heads(J& job, const Setting& from) {
  if (!from.is_null()) job.model.query_groups = from.count();
}

constexpr const char* kSinglePrecision = "trains in fp32; bf16 is simulated";

void take_neox_precision(J& job, const Setting& from) {
  const std::string text = lower(from.text());
  if (text == "bfloat16" || text == "bf16") {
    job.neox_precision = "bf16";
  } else if (text == "fp16" || text == "float16") {
    job.neox_precision = "fp16";
  } else if (text == "fp32" || text == "float32") {
    job.neox_precision = "bf16";
    job.not_modelled = kSinglePrecision;
  } else {
    from.fail("fp16, bfloat16, fp32");
  }
}
/// Of bf16 before DeepSpeed had it: {"fp16": {"enabled": true, "type": "bfloat16"}}.
void take_half_type(J& job, const Setting& from) {
  if (lower(from.text()) == "bfloat16") job.neox_precision = "bf16";
}

/// Of the layers in [[["flash"], 44]]: names, and how often they repeat.
void take_attention_kinds(J& job, const Setting& from) {
  for (const std::string& value : from.values) {
    std::int64_t times = 0;
    if (parse_whole(value, times)) continue;
    const std::string text = lower(value);
    if (text == "flash") {
      job.attention = "fused";
    } else if (text == "global") {
      job.attention = "unfused";
    } else {
      job.not_modelled = "layers of another attention: set model.window, or a pattern of kinds";
    }
  }
}
void take_checkpointing(J& job, const Setting& from) {
  job.recompute = from.flag() ? "full" : "none";
}
void take_checkpoint_group(J& job, const Setting& from) {
  if (from.count() > 1) {
    job.not_modelled = "inputs of every so many layers are kept: here those of each layer";
  }
}
/// Experts stand in every second layer, and a token goes to one of them, unless keys say otherwise.
void take_old_experts(J& job, const Setting& from) {
  if (from.count(0) < 2) return;
  job.model.experts = from.count();
  if (!job.model.expert_interval) job.model.expert_interval = 2;
  if (!job.model.expert_top) job.model.expert_top = 1;
}
void take_experts(J& job, const Setting& from) {
  if (from.count(0) < 2) return;
  job.model.experts = from.count();
  if (!job.model.expert_top) job.model.expert_top = 1;
}
void take_top(J& job, const Setting& from) { job.model.expert_top = from.count(); }
void take_interval(J& job, const Setting& from) { job.model.expert_interval = from.count(); }
void take_neox_capacity(J& job, const Setting& from) {
  if (from.number() > 0) job.capacity_factor = from.number();
}
/// Files of vocabularies have few names: that of GPT-NeoX-20B is one.
void take_vocabulary_file(J& job, const Setting& from) {
  if (from.text().find("20B_tokenizer") != std::string::npos) job.model.hint = "gpt_neox_20b";
}
void take_tokenizer_kind(J& job, const Setting& from) { job.model.tokenizer = from.text(); }
void take_padded_vocabulary(J& job, const Setting& from) {
  if (from.is_null()) return;
  job.model.vocabulary = from.count();
  job.model.vocabulary_is_padded = true;
}
template <const char* const& Switch>
void take_neox_fusion(J& job, const Setting& from) {
  job.stack_switches[Switch] = from.flag();
}
constexpr const char* kRotary = "fused_rope";
constexpr const char* kNorm = "fused_norm";
constexpr const char* kBiasDropout = "fused_bias_dropout";

constexpr std::array kNeoxRows{
    KeyRow{"pipe_parallel_size", kUsed, take_stages},
    KeyRow{"model_parallel_size", kUsed, take_count<&J::tensor>},
    KeyRow{"context_parallel_size", kUsed, take_count<&J::context>},
    KeyRow{"sequence_parallel", kUsed, take_flag<&J::sequence>},
    KeyRow{"moe_expert_parallel_size", kUsed, take_count<&J::expert>},
    KeyRow{"world_size global_num_gpus", kUsed, take_count<&J::gpus>},
    KeyRow{"num_layers", kUsed, take_model_count<&M::layers>},
    KeyRow{"hidden_size", kUsed, take_model_count<&M::hidden>},
    KeyRow{"intermediate_size feedforward_size", kUsed, take_model_count<&M::ffn>},
    KeyRow{"num_attention_heads", kUsed, take_model_count<&M::heads>},
    KeyRow{"num_kv_heads", kUsed, take_kv_heads},
    KeyRow{"max_position_embeddings", kUsed, take_model_count<&M::positions>},
    KeyRow{"make_vocab_size_divisible_by", kUsed, take_model_count<&M::vocabulary_multiple>},
    KeyRow{"padded_vocab_size", kUsed, take_padded_vocabulary},
    KeyRow{"vocab_file", kUsed, take_vocabulary_file},
    KeyRow{"tokenizer_type", kUsed, take_tokenizer_kind},
    KeyRow{"no_weight_tying", kUsed, take_model_no<&M::tied>},
    KeyRow{"use_bias_in_attn_linear", kUsed, take_model_flag<&M::biases>},
    KeyRow{"pos_emb", kUsed, take_position},
    KeyRow{"gpt_j_residual", kUsed, take_parallel_blocks},
    KeyRow{"gpt_j_tied", kUsed, take_shared_norm},
    KeyRow{"activation", kUsed, take_activation},
    KeyRow{"mlp_type", kUsed, take_mlp_type},
    KeyRow{"mlp_multiple_of", kUsed, take_multiple},
    KeyRow{"expansion_factor", kUsed, take_expansion},
    KeyRow{"sliding_window_width", kUsed, take_model_count<&M::window>},
    KeyRow{"moe_num_experts", kUsed, take_experts},
    KeyRow{"num_experts", kUsed, take_old_experts},
    KeyRow{"moe_top_k", kUsed, take_top},
    KeyRow{"expert_interval moe_expert_interval", kUsed, take_interval},
    KeyRow{"moe_train_capacity_factor", kUsed, take_neox_capacity},
    KeyRow{"seq_length", kUsed, take_count<&J::tokens>},
    KeyRow{"batch_size", kUsed, take_count<&J::micro>},
    KeyRow{"gas", kUsed, take_count<&J::accumulation>},
    KeyRow{"precision", kUsed, take_neox_precision},
    KeyRow{"fp16.type", kUsed, take_half_type},
    KeyRow{"attention_config*", kUsed, take_attention_kinds},
    KeyRow{"checkpoint_activations", kUsed, take_checkpointing},
    KeyRow{"checkpoint_num_layers", kUsed, take_checkpoint_group},
    KeyRow{"optimizer_type", kUsed, take_optimiser},
    KeyRow{"rope_fusion", kUsed, take_neox_fusion<kRotary>},
    KeyRow{"layernorm_fusion rmsnorm_fusion", kUsed, take_neox_fusion<kNorm>},
    KeyRow{"bias_dropout_fusion", kUsed, take_neox_fusion<kBiasDropout>},

    KeyRow{"partition_activations synchronize_each_layer checkpoint_in_cpu "
           "contiguous_checkpointing profile_backward",
           kMatters, nullptr, "how activations are checkpointed: set recompute or offload"},
    KeyRow{"pipe_partition_method", kMatters, nullptr,
           "where stages are cut: set parallelism.layers_per_stage"},
    KeyRow{"te_*", kMatters, nullptr, "layers of Transformer Engine: set stack and precision"},
    KeyRow{"num_unique_layers soft_prompt_tuning.* sparsity_config.* moe_use_residual "
           "mamba_* rwkv_* rwkv.* gmlp_attn_dim kto_* dpo_* train_impl packing_impl",
           kMatters, nullptr, "a feature of GPT-NeoX that changes what a step does"},
    KeyRow{"fp32_allreduce", kMatters, nullptr,
           "format of reduced gradients: set stack.reduced_format"},
    KeyRow{"enable_expert_tensor_parallelism", kMatters, nullptr,
           "experts are cut by the tensor width: set parallelism.expert_tensor"},
    KeyRow{"use_bnb_optimizer", kMatters, nullptr, "optimiser states of 8 bits"},
    KeyRow{"rotary_* norm layernorm_epsilon rms_norm_epsilon scalenorm_epsilon rpe_* "
           "opt_pos_emb_offset param_sharing_style init_method* output_layer_init_method "
           "output_layer_parallelism scaled_*_softmax_fusion bias_gelu_fusion "
           "use_flashattn_swiglu apply_query_key_layer_scaling use_cpu_initialization "
           "attention_softmax_in_fp32 fp16_lm_cross_entropy use_bias_in_norms use_bias_in_mlp "
           "use_qk_layernorm moe_* create_moe_param_group use_tutel z_loss "
           "mup_* use_mup coord_check base_shapes_file extra_sentinel_tokens decoder_seq_length",
           kHarmless},
    KeyRow{"lr lr_* min_lr warmup override_lr_scheduler use_checkpoint_lr_scheduler weight_decay "
           "clip_grad hysteresis loss_scale* min_scale dynamic_loss_scale hidden_dropout "
           "attention_dropout zero_reduce_* zero_contiguous_gradients zero_allgather_bucket_size "
           "onebitadam* sm3.* madgrad_wd.*",
           kHarmless},
    KeyRow{"save save_* load load_* checkpoint_factor extra_save_iters keep_last_n_checkpoints "
           "checkpoint_scale checkpoint_validation_with_forward_pass no_save_* no_load_* finetune "
           "train_iters train_epochs eval_* exit_interval log_* log_dir tensorboard_* use_wandb "
           "wandb_* use_comet comet_* git_hash seed char_level_ppl s3_* memory_profiling* profile "
           "profile_step_* iteration do_train do_valid do_test rank local_rank user_script "
           "eod_mask_loss adlr_* onnx_safe lazy_mpu_init short_seq_prob",
           kHarmless},
    KeyRow{"data_path data_impl data_* train_data_* valid_data_* test_data_* pos_train_* neg_* "
           "train_label_* valid_label_* test_label_* weight_by_num_documents weighted_* split "
           "mmap_warmup merge_file num_workers dataset_impl allow_chopped pack_impl "
           "reset_attention_mask reset_position_ids shared_fim* text_gen_type temperature top_p "
           "top_k maximum_tokens prompt_end sample_* num_samples recompute return_logits "
           "eval_results_prefix eval_tasks config_files",
           kHarmless},
    KeyRow{"distributed_backend deepspeed deepspeed_mpi deepspeed_slurm deepscale* "
           "deepspeed_activation_checkpointing detect_nvlink_pairs autotuning_run no_ssh_check "
           "launcher hostfile force_multi comment conf_dir d is_pipe_parallel "
           "deepspeed_extra_args.* use_shared_fs gradient_noise_scale_*",
           kHarmless},
};

}  // namespace
}  // namespace neox_file

std::span<const KeyRow> neox_keys() { return neox_file::kNeoxRows; }

}  // namespace lockstep
