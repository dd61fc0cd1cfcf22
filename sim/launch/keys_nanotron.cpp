// Keys of Nanotron's YAML (huggingface/nanotron, src/nanotron/config/*.py).
#include <array>

#include "sim/launch/key_table.hpp"

namespace lockstep {
namespace nanotron_file {
namespace {

using J = JobSketch;
using M = ModelSketch;
constexpr KeyFate kUsed = KeyFate::used, kHarmless = KeyFate::harmless,
                  kMatters = KeyFate::unmodelled;

/// AFAB is all forward passes, then all backward passes.
void take_engine(J& job, const Setting& from) {
  const std::string text = lower(from.text());
  if (text != "1f1b" && text != "afab") from.fail("1f1b, afab");
  job.schedule = text == "afab" ? "gpipe" : text;
}
void take_tensor_mode(J& job, const Setting& from) {
  const std::string text = lower(from.text());
  if (text != "reduce_scatter" && text != "all_reduce") from.fail("REDUCE_SCATTER, ALL_REDUCE");
  job.sequence = text == "reduce_scatter";
}
void take_tensor_async(J& job, const Setting& from) {
  if (!from.flag()) {
    job.not_modelled =
        "nothing of a tensor-parallel backward pass is hidden: set "
        "stack.communication.async_tensor_backward";
  }
}
void take_layer_recompute(J& job, const Setting& from) {
  job.recompute = from.flag() ? "full" : "none";
}
void take_zero(J& job, const Setting& from) {
  job.sharding = from.integer(0, 1) == 1 ? "zero1" : "none";
}
void take_accumulator(J& job, const Setting& from) { job.bf16_gradients = !from.flag(); }
void take_dtype(J& job, const Setting& from) {
  const std::string text = lower(from.text());
  job.precision = text == "float16" ? "fp16" : "bf16";
  if (text != "float16" && text != "bfloat16") {
    job.not_modelled = "trains in " + text + "; bf16 is simulated";
  }
}
void take_llama(J& job, const Setting& from) {
  if (from.flag()) job.model.gated = true;
}
/// Two matrices, biases, one group of keys and values unless it says more
/// (Starcoder2Config of models_config.py).
void take_starcoder(J& job, const Setting& from) {
  if (!from.flag()) return;
  job.model.gated = false;
  job.model.biases = true;
  if (!job.model.query_groups) job.model.query_groups = 1;
}
void take_groups(J& job, const Setting& from) {
  if (!from.is_null()) job.model.query_groups = from.count();
}
void take_window(J& job, const Setting& from) {
  if (!from.is_null()) job.model.window = from.count();
}
void take_shared_expert(J& job, const Setting& from) {
  if (from.flag() && !job.model.expert_shared_ffn) job.model.expert_shared_ffn = -1;
}
void take_shared_width(J& job, const Setting& from) {
  if (!from.is_off()) job.model.expert_shared_ffn = from.count();
}
/// Numbers of the layers that have experts; -1 is all of them.
void take_expert_layers(J& job, const Setting& from) {
  if (from.values.size() != 1 || from.text() != "-1") {
    job.not_modelled = "which layers have experts: set model.experts.leading_dense and interval";
  }
}
void take_dispatcher(J& job, const Setting& from) {
  const std::string text = lower(from.text());
  if (text == "alltoall") job.expert_dispatch = "all_to_all";
  if (text == "allgather") job.not_modelled = "tokens are gathered by every expert's rank";
}
void take_tokenizer_name(J& job, const Setting& from) {
  if (!from.is_null()) job.model.hint = from.text();
}
template <const char* const& Switch>
void take_nanotron_switch(J& job, const Setting& from) {
  job.stack_switches[Switch] = from.flag();
}
constexpr const char* kNorm = "fused_norm";
constexpr const char* kRotary = "fused_rope";

constexpr std::array kNanotronRows{
    KeyRow{"parallelism.dp", kUsed, take_count<&J::data>},
    KeyRow{"parallelism.tp", kUsed, take_count<&J::tensor>},
    KeyRow{"parallelism.pp", kUsed, take_count<&J::pipeline>},
    KeyRow{"parallelism.context_parallel_size", kUsed, take_count<&J::context>},
    KeyRow{"parallelism.expert_parallel_size", kUsed, take_count<&J::expert>},
    KeyRow{"parallelism.expert_tensor_parallel_size", kUsed, take_count<&J::expert_tensor>},
    KeyRow{"parallelism.pp_engine", kUsed, take_engine},
    KeyRow{"parallelism.tp_mode", kUsed, take_tensor_mode},
    KeyRow{"parallelism.tp_linear_async_communication", kUsed, take_tensor_async},
    KeyRow{"parallelism.recompute_layer", kUsed, take_layer_recompute},
    KeyRow{"tokens.sequence_length", kUsed, take_count<&J::tokens>},
    KeyRow{"tokens.micro_batch_size", kUsed, take_count<&J::micro>},
    KeyRow{"tokens.batch_accumulation_per_replica", kUsed, take_count<&J::accumulation>},
    KeyRow{"optimizer.zero_stage", kUsed, take_zero},
    KeyRow{"optimizer.accumulate_grad_in_fp32", kUsed, take_accumulator},
    KeyRow{"optimizer.optimizer_factory.name optimizer.name", kUsed, take_optimiser},
    KeyRow{"model.dtype", kUsed, take_dtype},
    KeyRow{"model.make_vocab_size_divisible_by", kUsed, take_model_count<&M::vocabulary_multiple>},
    KeyRow{"model.model_config.is_llama_config model.model_config.is_qwen2_config", kUsed,
           take_llama},
    KeyRow{"model.model_config.is_starcoder2_config", kUsed, take_starcoder},
    KeyRow{"model.model_config.num_hidden_layers", kUsed, take_model_count<&M::layers>},
    KeyRow{"model.model_config.hidden_size", kUsed, take_model_count<&M::hidden>},
    KeyRow{"model.model_config.intermediate_size", kUsed, take_model_count<&M::ffn>},
    KeyRow{"model.model_config.num_attention_heads", kUsed, take_model_count<&M::heads>},
    KeyRow{"model.model_config.num_key_value_heads model.model_config.num_kv_heads", kUsed,
           take_groups},
    KeyRow{"model.model_config.head_dim", kUsed, take_model_count<&M::head_dim>},
    KeyRow{"model.model_config.max_position_embeddings", kUsed, take_model_count<&M::positions>},
    KeyRow{"model.model_config.vocab_size", kUsed, take_model_count<&M::vocabulary>},
    KeyRow{"model.model_config.tie_word_embeddings", kUsed, take_model_flag<&M::tied>},
    KeyRow{"model.model_config.sliding_window_size", kUsed, take_window},
    KeyRow{"model.model_config._attn_implementation model.model_config.attn_implementation", kUsed,
           take_attention},
    KeyRow{"model.model_config._fused_rms_norm", kUsed, take_nanotron_switch<kNorm>},
    KeyRow{"model.model_config._fused_rotary_emb", kUsed, take_nanotron_switch<kRotary>},
    KeyRow{"model.model_config.moe_config.num_experts model.model_config.moe_num_experts", kUsed,
           take_model_count<&M::experts>},
    KeyRow{
        "model.model_config.moe_config.top_k model.model_config.moe_config.num_experts_per_token "
        "model.model_config.num_experts_per_tok",
        kUsed, take_model_count<&M::expert_top>},
    KeyRow{"model.model_config.moe_config.moe_intermediate_size", kUsed,
           take_model_count<&M::expert_ffn>},
    KeyRow{"model.model_config.moe_config.shared_expert_intermediate_size", kUsed,
           take_shared_width},
    KeyRow{"model.model_config.moe_config.enable_shared_expert", kUsed, take_shared_expert},
    KeyRow{"model.model_config.moe_config.layers", kUsed, take_expert_layers},
    KeyRow{"model.model_config.moe_config.token_dispatcher_type", kUsed, take_dispatcher},
    KeyRow{"tokenizer.tokenizer_name_or_path", kUsed, take_tokenizer_name},

    KeyRow{"parallelism.tp_recompute_allgather parallelism.moe_layer_recompute", kHarmless},
    KeyRow{"model.ddp_bucket_cap_mb", kMatters, nullptr,
           "sizes of buckets: set stack.communication.bucket_parameters"},
    KeyRow{"model.model_config._use_doc_masking model.model_config.flex_attention_mask", kMatters,
           nullptr, "attention within documents: set batch.sample_tokens"},
    KeyRow{"parallelism.domino* fp8.* model.model_config.is_*_config model.model_config.ssm_cfg.*",
           kMatters, nullptr, "a feature of Nanotron that changes what a step does"},
    KeyRow{"model.* optimizer.* tokenizer.* tokens.* general.* logging.* checkpoints.* "
           "data_stages.* data.* lighteval lighteval.* profiler profiler.* s3_upload s3_upload.* "
           "metrics_logging metrics_logging.* doremi.* parallelism.* experiment_logger.* "
           "config_file",
           kHarmless},
};

}  // namespace
}  // namespace nanotron_file

std::span<const KeyRow> nanotron_keys() { return nanotron_file::kNanotronRows; }

}  // namespace lockstep
