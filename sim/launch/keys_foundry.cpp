// Keys of LLM Foundry's YAML (mosaicml/llm-foundry, scripts/train/yamls; llmfoundry/command_utils/
// train.py, TrainConfig), with "parameters." before them in files of MosaicML's platform.
#include <array>

#include "sim/launch/key_table.hpp"

namespace lockstep {
namespace foundry_file {
namespace {

using J = JobSketch;
using M = ModelSketch;
constexpr KeyFate kUsed = KeyFate::used, kHarmless = KeyFate::harmless,
                  kMatters = KeyFate::unmodelled;

/// "auto" finds the micro batch in the run.
void take_foundry_micro(J& job, const Setting& from) {
  if (lower(from.text()) == "auto") {
    job.not_modelled = "found in the run: set batch.micro";
    return;
  }
  job.micro = from.count();
}
/// "amp_bf16", "amp_fp8", "fp32".
void take_foundry_precision(J& job, const Setting& from) {
  const std::string text = lower(from.text());
  const auto has = [&](std::string_view word) { return text.find(word) != std::string::npos; };
  job.precision = has("fp8") ? "fp8" : has("fp16") ? "fp16" : "bf16";
  if (text == "fp32") job.not_modelled = "trains in fp32; bf16 is simulated";
}
void take_foundry_strategy(J& job, const Setting& from) {
  if (!take_fsdp_name(job, lower(from.text()))) {
    from.fail("FULL_SHARD, SHARD_GRAD_OP, NO_SHARD, HYBRID_SHARD");
  }
}
void take_foundry_recompute(J& job, const Setting& from) {
  job.recompute = from.flag() ? "full" : "none";
}
void take_foundry_kind(J& job, const Setting& from) {
  const std::string text = lower(from.text());
  if (text == "grouped_query_attention" && !job.model.grouped) job.model.grouped = true;
  if (text == "multiquery_attention") job.model.query_groups = 1;
}
void take_foundry_attention(J& job, const Setting& from) {
  job.attention = lower(from.text()) == "torch" ? "unfused" : "fused";
}
void take_foundry_mlp(J& job, const Setting& from) {
  job.model.gated = lower(from.text()).find("glu") != std::string::npos;
}
void take_expansion(J& job, const Setting& from) { job.neox_expansion = from.number(); }
/// MPT's own shape, which has a table of positions where nothing else is asked for
/// (mosaicml/llm-foundry, llmfoundry/models/mpt/configuration_mpt.py).
constexpr std::string_view kLearned = "learned_absolute";
void take_foundry_width(J& job, const Setting& from) {
  job.model.hidden = from.count();
  if (job.model.position_kind.empty()) job.model.position_kind = kLearned;
}
void take_foundry_length(J& job, const Setting& from) {
  job.model.positions = from.count();
  if (!job.tokens) job.tokens = job.model.positions;
}
void take_alibi(J& job, const Setting& from) {
  if (from.flag()) job.model.position_kind = "alibi";
}
void take_foundry_rope(J& job, const Setting& from) {
  if (from.flag()) job.model.position_kind = "rope";
}
void take_learned(J& job, const Setting& from) {
  const bool by_default = job.model.position_kind.empty() || job.model.position_kind == kLearned;
  if (!from.flag() && by_default) job.model.position_kind = "none";
}
void take_foundry_window(J& job, const Setting& from) {
  if (from.text() != "-1") job.model.window = from.count();
}
void take_foundry_model(J& job, const Setting& from) { job.model.name = from.text(); }
void take_foundry_tokenizer(J& job, const Setting& from) { job.model.hint = from.text(); }
void take_adapter_rank(J& job, const Setting& from) {
  job.lora = true;
  job.lora_rank = from.count();
}

constexpr std::array kFoundryRows{
    KeyRow{"model.pretrained_model_name_or_path", kUsed, take_foundry_model},
    KeyRow{"tokenizer.name tokenizer_name", kUsed, take_foundry_tokenizer},
    KeyRow{"model.d_model", kUsed, take_foundry_width},
    KeyRow{"model.max_seq_len", kUsed, take_foundry_length},
    KeyRow{"model.n_layers", kUsed, take_model_count<&M::layers>},
    KeyRow{"model.n_heads", kUsed, take_model_count<&M::heads>},
    KeyRow{"model.expansion_ratio model.mlp_ratio", kUsed, take_expansion},
    KeyRow{"model.vocab_size", kUsed, take_model_count<&M::vocabulary>},
    KeyRow{"model.no_bias", kUsed, take_model_no<&M::biases>},
    KeyRow{"model.tie_word_embeddings", kUsed, take_model_flag<&M::tied>},
    KeyRow{"model.learned_pos_emb", kUsed, take_learned},
    KeyRow{"model.attn_config.attn_impl model.attn_impl", kUsed, take_foundry_attention},
    KeyRow{"model.attn_config.attn_type", kUsed, take_foundry_kind},
    KeyRow{"model.attn_config.kv_n_heads", kUsed, take_model_count<&M::query_groups>},
    KeyRow{"model.attn_config.alibi model.alibi", kUsed, take_alibi},
    KeyRow{"model.attn_config.rope", kUsed, take_foundry_rope},
    KeyRow{"model.attn_config.sliding_window_size", kUsed, take_foundry_window},
    KeyRow{"model.ffn_config.ffn_type", kUsed, take_foundry_mlp},
    KeyRow{"model.ffn_config.ffn_hidden_size", kUsed, take_model_count<&M::ffn>},
    KeyRow{"model.ffn_config.moe_num_experts", kUsed, take_model_count<&M::experts>},
    KeyRow{"model.ffn_config.moe_top_k", kUsed, take_model_count<&M::expert_top>},
    KeyRow{"max_seq_len", kUsed, take_count<&J::tokens>},
    KeyRow{"global_train_batch_size", kUsed, take_count<&J::sequences>},
    KeyRow{"device_train_microbatch_size", kUsed, take_foundry_micro},
    KeyRow{"precision", kUsed, take_foundry_precision},
    KeyRow{"fsdp_config.sharding_strategy", kUsed, take_foundry_strategy},
    KeyRow{"fsdp_config.activation_checkpointing", kUsed, take_foundry_recompute},
    KeyRow{"fsdp_config.data_parallel_shard_degree", kUsed, take_count<&J::shard_group>},
    KeyRow{"tp_config.tensor_parallel_degree", kUsed, take_count<&J::tensor>},
    KeyRow{"optimizer.name", kUsed, take_optimiser},
    KeyRow{"model.peft_config.r", kUsed, take_adapter_rank},
    KeyRow{"compute.gpus", kUsed, take_count<&J::gpus>},
    KeyRow{"variables.* seed global_seed run_name name max_duration eval_* icl_* train_loader.* "
           "scheduler.* optimizer.* algorithms.* callbacks.* loggers.* progress_bar log_* "
           "console_log_interval save_* load_* autoresume dist_timeout device_eval_* "
           "python_log_level tokenizer.* data_local data_remote code_paths hf_* compute.* command "
           "integrations* image env_variables* profiler.* accumulate_train_batch_on_tokens "
           "metadata.* only_* expandable_segments max_split_size_mb scheduling.* cluster "
           "model.name model.init_device model.init_config.* model.resid_pdrop "
           "model.emb_pdrop model.norm_* model.init_nonlinearity model.logit_scale model.verbose "
           "model.pretrained model.use_auth_token model.config_overrides.* "
           "model.use_train_metrics model.trust_remote_code model.attn_config.attn_pdrop "
           "model.attn_config.softmax_scale model.attn_config.alibi_bias_max "
           "model.attn_config.attn_uses_sequence_id model.attn_config.rope_* "
           "model.ffn_config.ffn_act_fn.* model.ffn_config.moe_* model.peft_config.* "
           "fsdp_config.* use_orig_params gradient_clipping_*",
           kHarmless},
    KeyRow{"model.attn_config.clip_qkv model.attn_config.qk_ln model.attn_config.qk_gn "
           "model.attn_config.*",
           kMatters, nullptr, "a small kernel of attention"},
    KeyRow{"fsdp_config.mixed_precision", kMatters, nullptr,
           "format of weights and of reduced gradients: set stack.reduced_format"},
    KeyRow{"fsdp_config.activation_cpu_offload", kMatters, nullptr,
           "inputs of layers wait on the host: set offload.activation_layers"},
    KeyRow{"model.ffn_config.moe_world_size fsdp_config.data_parallel_replicate_degree "
           "fsdp_config.backward_prefetch fsdp_config.activation_checkpointing_target",
           kMatters, nullptr, "how layers are shared out, or which are checkpointed"},
    KeyRow{"compile_config.* compile_config", kMatters, nullptr,
           "torch.compile: set stack.torch_compile"},
};

}  // namespace
}  // namespace foundry_file

std::span<const KeyRow> foundry_keys() { return foundry_file::kFoundryRows; }

}  // namespace lockstep
