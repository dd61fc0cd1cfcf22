// Keys of MaxText's YAML, and of its command line.
#include <algorithm>
#include <array>
#include <fmt/format.h>

#include "sim/launch/key_table.hpp"

namespace lockstep {
namespace maxtext_file {
namespace {

using J = JobSketch;
using M = ModelSketch;
constexpr KeyFate kUsed = KeyFate::used, kHarmless = KeyFate::harmless,
                  kMatters = KeyFate::unmodelled;

void multiply(std::optional<int>& out, const Setting& from) {
  constexpr std::int64_t kMostGpus = 100'000'000;
  out = static_cast<int>(
      std::min(kMostGpus, std::int64_t{out.value_or(1)} * from.integer(1, 20'000)));
}
/// A mesh has each axis twice: between the nodes of a slice, and between slices.
template <auto Member>
void take_axis(J& job, const Setting& from) {
  if (from.text() == "-1") return;  // what is left
  multiply(job.*Member, from);
}
/// What is left falls to one axis: to `shard` unless the copies have it.
void take_fsdp_axis(J& job, const Setting& from) {
  std::optional<int> said = job.shard == -1 ? job.shard_least : job.shard;
  if (from.text() == "-1") {
    job.shard_least = said.value_or(1);
    job.shard = -1;
    return;
  }
  multiply(said, from);
  (job.shard == -1 ? job.shard_least : job.shard.emplace()) = *said;
}
void take_data_axis(J& job, const Setting& from) {
  if (from.text() == "-1") {
    job.data = -1;
    return;
  }
  if (job.replicate.value_or(1) >= 1) multiply(job.replicate, from);
}

void take_per_device(J& job, const Setting& from) {
  job.per_device = from.number();
  if (*job.per_device <= 0) from.fail("a number above 0");
}

void take_remat(J& job, const Setting& from) {
  const std::string text = lower(from.text());
  if (text == "full" || text == "save_out_proj") {
    job.recompute = "full";
  } else if (text == "save_dot_except_mlp" || text == "save_dot_except_mlpwi") {
    job.recompute = "selective";
    job.recompute_modules = {"layer_norm", "activation", "mlp_up"};
    if (text == "save_dot_except_mlp") job.recompute_modules.emplace_back("mlp");
  } else if (text == "minimal" || text == "save_dot_with_context_except_mlp" ||
             text == "minimal_flash" || text == "minimal_with_context") {
    job.recompute = "selective";
    job.recompute_modules = {"layer_norm", "activation"};
  } else if (text == "save_qkv_proj" || text == "qkv_proj_offloaded") {
    job.recompute = "selective";
    job.recompute_modules = {"layer_norm", "activation", "mlp", "projection"};
  } else {
    job.recompute = "full";
    job.remarks.push_back(fmt::format("{} {}: taken as full", from.key, from.text()));
  }
}

void take_quantization(J& job, const Setting& from) {
  if (from.is_off()) return;
  const std::string text = lower(from.text());
  if (text.find("fp8") != std::string::npos) {
    job.precision = "fp8";
  } else {
    job.remarks.push_back(fmt::format("{} {}: taken as bf16", from.key, from.text()));
  }
}
void take_dtype(J& job, const Setting& from) {
  if (!job.precision.empty()) return;
  if (from.text() == "bfloat16") job.precision = "bf16";
  if (from.text() == "float16") job.precision = "fp16";
}
void take_name(J& job, const Setting& from) {
  if (from.text() != "default") job.model.name = from.text();
}
void take_tokenizer_path(J& job, const Setting& from) { job.model.hint = from.text(); }
void take_activations(J& job, const Setting& from) { job.model.gated = from.values.size() > 1; }
void take_experts(J& job, const Setting& from) {
  if (from.count(0) > 1) job.model.experts = from.count();
}
void take_capacity(J& job, const Setting& from) {
  if (from.number() > 0) job.capacity_factor = from.number();
}
void take_optimizer_memory(J& job, const Setting& from) {
  if (from.flag()) job.offload_optimizer = 1;
}
void take_parameter_memory(J& job, const Setting& from) {
  if (from.flag()) job.offload_parameters = true;
}
void take_decoder_block(J& job, const Setting& from) {
  if (job.model.name.empty()) job.model.hint = from.text();
}
void take_attention_type(J& job, const Setting& from) {
  if (lower(from.text()) == "mla") job.model.latent_attention = true;
}
void take_optional_rank(J& job, const Setting& from) {
  if (!from.is_off()) job.model.query_rank = from.count();
}
void take_predicted(J& job, const Setting& from) {
  if (!from.is_off()) job.model.predicted_tokens = from.count();
}
void take_leading(J& job, const Setting& from) { job.model.leading_dense = from.count(0); }
void take_shared(J& job, const Setting& from) {
  if (!from.is_off()) job.model.expert_shared_ffn = -from.count();
}
void take_scale(J&, const Setting& from) {
  if (from.count(0) > 1) from.fail("1, or the widths that come out of it");
}

constexpr std::array kMaxTextRows{
    KeyRow{"model_name", kUsed, take_name},
    KeyRow{"per_device_batch_size", kUsed, take_per_device},
    KeyRow{"max_target_length", kUsed, take_count<&J::tokens>},
    KeyRow{"gradient_accumulation_steps", kUsed, take_count<&J::accumulation>},
    KeyRow{"ici_tensor_parallelism dcn_tensor_parallelism ici_tensor_sequence_parallelism "
           "dcn_tensor_sequence_parallelism ici_tensor_transpose_parallelism "
           "dcn_tensor_transpose_parallelism",
           kUsed, take_axis<&J::tensor>},
    KeyRow{"ici_pipeline_parallelism dcn_pipeline_parallelism", kUsed, take_axis<&J::pipeline>},
    KeyRow{"ici_context_parallelism dcn_context_parallelism ici_sequence_parallelism "
           "dcn_sequence_parallelism ici_context_autoregressive_parallelism "
           "dcn_context_autoregressive_parallelism",
           kUsed, take_axis<&J::context>},
    KeyRow{"ici_expert_parallelism dcn_expert_parallelism", kUsed, take_axis<&J::expert>},
    KeyRow{"ici_fsdp_parallelism dcn_fsdp_parallelism ici_fsdp_transpose_parallelism "
           "dcn_fsdp_transpose_parallelism",
           kUsed, take_fsdp_axis},
    KeyRow{"ici_data_parallelism dcn_data_parallelism num_slices", kUsed, take_data_axis},
    KeyRow{"num_layers_per_pipeline_stage", kUsed, take_count<&J::layers_per_virtual_stage>},
    KeyRow{"remat_policy", kUsed, take_remat},
    KeyRow{"quantization", kUsed, take_quantization},
    KeyRow{"dtype", kUsed, take_dtype},
    KeyRow{"optimizer_memory_host_offload", kUsed, take_optimizer_memory},
    KeyRow{"parameter_memory_host_offload", kUsed, take_parameter_memory},
    KeyRow{"capacity_factor", kUsed, take_capacity},
    KeyRow{"tokenizer_path", kUsed, take_tokenizer_path},
    KeyRow{"decoder_block", kUsed, take_decoder_block},
    KeyRow{"base_num_decoder_layers", kUsed, take_model_count<&M::layers>},
    KeyRow{"base_emb_dim", kUsed, take_model_count<&M::hidden>},
    KeyRow{"base_mlp_dim", kUsed, take_model_count<&M::ffn>},
    KeyRow{"base_num_query_heads", kUsed, take_model_count<&M::heads>},
    KeyRow{"base_num_kv_heads", kUsed, take_model_count<&M::query_groups>},
    KeyRow{"head_dim", kUsed, take_model_count<&M::head_dim>},
    KeyRow{"vocab_size", kUsed, take_model_count<&M::vocabulary>},
    KeyRow{"logits_via_embedding", kUsed, take_model_flag<&M::tied>},
    KeyRow{"mlp_activations", kUsed, take_activations},
    KeyRow{"num_experts", kUsed, take_experts},
    KeyRow{"num_experts_per_tok", kUsed, take_model_count<&M::expert_top>},
    KeyRow{"base_moe_mlp_dim", kUsed, take_model_count<&M::expert_ffn>},
    KeyRow{"shared_experts", kUsed, take_shared},
    KeyRow{"first_num_dense_layers", kUsed, take_leading},
    KeyRow{"interleave_moe_layer_step", kUsed, take_model_count<&M::expert_interval>},
    KeyRow{"attention_type", kUsed, take_attention_type},
    KeyRow{"attention", kUsed, take_attention},
    KeyRow{"q_lora_rank", kUsed, take_optional_rank},
    KeyRow{"kv_lora_rank", kUsed, take_model_count<&M::key_value_rank>},
    KeyRow{"qk_nope_head_dim", kUsed, take_model_count<&M::nope_dim>},
    KeyRow{"qk_rope_head_dim", kUsed, take_model_count<&M::rope_dim>},
    KeyRow{"v_head_dim", kUsed, take_model_count<&M::value_dim>},
    KeyRow{"mtp_num_layers", kUsed, take_predicted},
    KeyRow{"global_parameter_scale", kUsed, take_scale},

    KeyRow{"num_pipeline_microbatches num_pipeline_repeats pipeline_* scan_pipeline_*", kMatters,
           nullptr, "micro batches of a pipeline: set batch.micro and parallelism.virtual_stages"},
    KeyRow{"ici_autoregressive_parallelism dcn_autoregressive_parallelism", kHarmless},
    KeyRow{"context_parallel_load_balance context_parallel_strategy sliding_window_size "
           "shard_mode allow_split_physical_axes expert_shard_attention_option "
           "fsdp_shard_on_exp custom_mesh shard_exp_on_fsdp use_ring_of_experts",
           kMatters, nullptr, "how the mesh is laid out, and what attention sees"},
    KeyRow{
        "weight_dtype grad_dtype mu_dtype opt_type adam_* use_qk_norm fused_qkv fused_mlp "
        "decoder_layer_input context mlpwi mlpwo query_proj key_proj value_proj out_proj qkv_proj "
        "mlpwi_0 mlpwi_1 optimizer_* constant_bound_config quant_cfg_path",
        kMatters, nullptr, "formats, fusions and saved results of its layers"},
    KeyRow{"sparse_matmul megablox use_random_routing tile_* wi_tile_* wo_tile_* "
           "use_custom_sort_vjp ragged_* load_balance_loss_weight routed_* topk_routing_group "
           "n_routing_groups norm_topk_prob float32_weight_sum use_ragged_dot",
           kHarmless},
    KeyRow{"run_name base_output_directory base_config hardware steps dataset* hf_* grain_* "
           "tokenizer_type scan_layers enable_* async_checkpointing load_* checkpoint* "
           "save_* log_* learning_rate* warmup_* cosine_* profiler* profile_* "
           "skip_first_n_steps_for_profiler upload_* tensorboard_* metrics_file gcs_* "
           "eval_* data_shuffle_seed init_weights_seed xla_* jax_* compile_* compiled_* "
           "use_iota_embed rope_* rotary_* normalization_layer_epsilon dropout_rate "
           "logical_axis_rules* data_sharding mesh_axes gradient_clipping_threshold "
           "gradient_* goodput_* monitor_* reuse_example_batch max_prefill_predict_length "
           "inference_* prefill_* vertex_* stack_trace_* collect_stack_trace add_bos add_eos "
           "packing expansion_factor_real_data "
           "float32_logits float32_qk_product activations_in_float32 cast_logits_to_fp32 "
           "logits_dot_in_fp32 opt_* matmul_precision trainable_position_size "
           "record_internal_nn_metrics "
           "target_eval_loss local_checkpoint_* replicator_* use_* z_loss_multiplier "
           "max_position_embeddings original_max_position_embeddings "
           "train_* tokenize_* prompt* autoregressive_* decode_* cost_estimate_* sa_* "
           "dump_* emergency_* multi_tier_* prometheus_* override_model_config mscale beta_fast "
           "beta_slow "
           "final_logits_soft_cap attn_logits_soft_cap global_rope_* local_rope_* "
           "mtp_loss_scaling_factor "
           "mtp_eval_target_module num_epoch generate_* worker_* init_* num_vocab_tiling",
           kHarmless},
};

}  // namespace
}  // namespace maxtext_file

std::span<const KeyRow> maxtext_keys() { return maxtext_file::kMaxTextRows; }

}  // namespace lockstep
