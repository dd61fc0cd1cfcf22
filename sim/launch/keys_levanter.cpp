// Keys of Levanter's YAML (stanford-crfm/levanter, config/*.yaml; src/levanter/trainer.py).
#include <array>
#include <fmt/format.h>

#include "sim/launch/key_table.hpp"

namespace lockstep {
namespace levanter_file {
namespace {

using J = JobSketch;
using M = ModelSketch;
constexpr KeyFate kUsed = KeyFate::used, kHarmless = KeyFate::harmless,
                  kMatters = KeyFate::unmodelled;

void take_levanter_type(J& job, const Setting& from) {
  const std::string text = lower(from.text());
  job.model.gated = !text.starts_with("gpt2");
  job.model.position_kind = text.starts_with("gpt2") ? "learned_absolute" : "rope";
  job.model.biases = text.starts_with("gpt2");
  if (!job.model.tied) job.model.tied = text.starts_with("gpt2") || text.starts_with("gemma");
}
/// A name of Hugging Face, or "true" for that of the model.
void take_checkpoint(J& job, const Setting& from) {
  const std::string text = lower(from.text());
  if (text != "true" && text != "false") job.model.name = from.text();
}
/// "p=f32,c=bfloat16": weights, and products.
void take_policy(J& job, const Setting& from) {
  std::string text;
  for (const std::string& value : from.values) text += lower(value) + ",";
  const std::size_t at = text.find("c=");
  const std::string products = at == std::string::npos ? text : text.substr(at + 2);
  const bool bf16 = products.starts_with("bf") || products.starts_with("half");
  job.precision = products.starts_with("f16") || products.starts_with("float16") ? "fp16" : "bf16";
  if (!bf16 && job.precision == "bf16") {
    job.not_modelled = "trains in fp32; bf16 is simulated";
  }
}
void take_per_device(J& job, const Setting& from) {
  if (from.text() != "-1") job.micro = from.count();
}
void take_levanter_recompute(J& job, const Setting& from) {
  const std::string text = lower(from.text());
  job.recompute = text == "false" || text == "none" ? "none" : "full";
  if (text != "false" && text != "none" && text != "true" && text != "full") {
    job.remarks.push_back(fmt::format("{} {}: taken as full", from.key, text));
  }
}
void take_length(J& job, const Setting& from) {
  job.tokens = from.count();
  job.model.positions = from.count();
}
void take_levanter_hint(J& job, const Setting& from) { job.model.hint = from.text(); }
void take_levanter_flash(J& job, const Setting& from) {
  if (!from.flag()) job.attention = "unfused";
}

constexpr std::array kLevanterRows{
    KeyRow{"model.type", kUsed, take_levanter_type},
    KeyRow{"initialize_from_hf", kUsed, take_checkpoint},
    KeyRow{"data.tokenizer", kUsed, take_levanter_hint},
    KeyRow{"model.seq_len model.max_seq_len train_seq_len", kUsed, take_length},
    KeyRow{"model.hidden_dim", kUsed, take_model_count<&M::hidden>},
    KeyRow{"model.intermediate_dim", kUsed, take_model_count<&M::ffn>},
    KeyRow{"model.num_layers", kUsed, take_model_count<&M::layers>},
    KeyRow{"model.num_heads", kUsed, take_model_count<&M::heads>},
    KeyRow{"model.num_kv_heads", kUsed, take_model_count<&M::query_groups>},
    KeyRow{"model.head_dim", kUsed, take_model_count<&M::head_dim>},
    KeyRow{"model.tie_word_embeddings", kUsed, take_model_flag<&M::tied>},
    KeyRow{"model.n_routed_experts", kUsed, take_model_count<&M::experts>},
    KeyRow{"model.num_experts_per_tok", kUsed, take_model_count<&M::expert_top>},
    KeyRow{"model.gradient_checkpointing", kUsed, take_levanter_recompute},
    KeyRow{"model.use_flash_attention", kUsed, take_levanter_flash},
    KeyRow{"trainer.train_batch_size", kUsed, take_count<&J::sequences>},
    KeyRow{"trainer.per_device_parallelism", kUsed, take_per_device},
    KeyRow{"trainer.model_axis_size", kUsed, take_count<&J::tensor>},
    KeyRow{"trainer.replica_dcn_axis_size", kUsed, take_count<&J::shard_copies>},
    KeyRow{"trainer.mp", kUsed, take_policy},
    KeyRow{"optimizer.type", kUsed, take_optimiser},
    KeyRow{"trainer.replica_ici_axis_size trainer.tensor_parallel_axes trainer.axis_resources.* "
           "trainer.parameter_axis_resources.* trainer.quantization.* trainer.fp8",
           kMatters, nullptr, "how the mesh is laid out, or products of 8 bits"},
    KeyRow{"config_path data.* data model.* trainer.* optimizer.* hf_* use_hf_* data_seed "
           "z_loss_weight "
           "initialize_from_checkpoint_path epoch log_entropy eval_* out_* checkpoint_path",
           kHarmless},
};

}  // namespace
}  // namespace levanter_file

std::span<const KeyRow> levanter_keys() { return levanter_file::kLevanterRows; }

}  // namespace lockstep
