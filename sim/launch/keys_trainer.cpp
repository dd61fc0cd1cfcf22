// Arguments of Hugging Face's Trainer, and of what builds on it (TRL, LLaMA-Factory, Axolotl).
#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <string_view>
#include <utility>

#include "sim/launch/key_table.hpp"

namespace lockstep {
namespace trainer_file {
namespace {

using J = JobSketch;
constexpr KeyFate kUsed = KeyFate::used, kHarmless = KeyFate::harmless,
                  kMatters = KeyFate::unmodelled;

void take_hf_model(J& job, const Setting& from) {
  if (!from.is_null()) job.model.name = from.text();
}
void take_length(J& job, const Setting& from) {
  if (!from.is_null()) job.tokens = from.count();
}
/// A name that LLaMA-Factory has among others: one alone does not say that it is it.
void note_llama_factory(J& job, const char* word) { job.llama_factory_words.insert(word); }
void take_cutoff(J& job, const Setting& from) {
  note_llama_factory(job, "cutoff_len");
  take_length(job, from);
}
void take_template(J& job, const Setting&) { note_llama_factory(job, "template"); }
void take_no_default_checkpointing(J& job, const Setting& from) {
  job.llama_factory = true;
  job.no_default_checkpointing = from.flag();
}
/// Products in FP8 are asked for beside bf16, in either order.
void take_trainer_bf16(J& job, const Setting& from) {
  if (job.precision == "fp8") return;
  if (from.text() == "auto" || from.flag()) job.precision = "bf16";
}
/// Axolotl's and LLaMA-Factory's, by torchao or Transformer Engine.
void take_trainer_fp8(J& job, const Setting& from) {
  if (from.flag()) job.precision = "fp8";
}
void take_trainer_fp16(J& job, const Setting& from) {
  if (from.text() != "auto" && from.flag()) job.precision = "fp16";
}
void take_dtype(J& job, const Setting& from) {
  const std::string text = lower(from.text());
  if (text == "auto") job.loaded_precision = text;
  if (text == "bfloat16" || text == "bf16") job.loaded_precision = "bf16";
  if (text == "float16" || text == "fp16") job.loaded_precision = "fp16";
}
void take_checkpointing(J& job, const Setting& from) {
  const std::string text = lower(from.text());
  if (text == "unsloth" || text == "offload") {
    job.recompute = "full";
    job.remarks.push_back(fmt::format("{} {}: taken as true", from.key, text));
  } else {
    job.recompute = from.flag() ? "full" : "none";
  }
}

/// "full_shard auto_wrap offload".
void take_fsdp_words(J& job, const Setting& from) {
  std::string all = lower(from.text());
  for (const std::string& word : words_of(all)) {
    if (word == "true") job.sharding = "zero3";
    take_fsdp_name(job, word);
    if (word == "offload") {
      job.offload_optimizer = 1;
      job.offload_parameters = true;
    }
  }
  if (!job.fsdp_version) job.fsdp_version = 1;
}

void take_fsdp_version(J& job, const Setting& from) { job.fsdp_version = from.count(); }
void take_compiled(J& job, const Setting& from) {
  if (from.flag()) job.stack_switches["torch_compile"] = true;
}
void take_liger(J& job, const Setting& from) {
  if (!from.flag()) return;
  for (const char* const one : {"fused_norm", "fused_rope", "fused_swiglu"}) {
    job.stack_switches[one] = true;
  }
  job.stack_switches["chunked_cross_entropy"] = true;
}
/// One operator of Liger: Axolotl has a key for each.
template <const char* const& Switch>
void take_one_fused(J& job, const Setting& from) {
  if (from.flag()) job.stack_switches[Switch] = true;
}
constexpr const char* kFusedNorm = "fused_norm";
constexpr const char* kFusedRotary = "fused_rope";
constexpr const char* kFusedGate = "fused_swiglu";
constexpr const char* kFusedLoss = "fused_cross_entropy";
constexpr const char* kChunkedLoss = "chunked_cross_entropy";
constexpr const char* kOneQkv = "merged_qkv";

void take_lora_rank(J& job, const Setting& from) {
  if (!from.is_off()) job.lora_rank = from.count();
}
void take_adapter(J& job, const Setting& from) {
  if (plain_key(from.key) == "finetuning_type") job.llama_factory = true;
  const std::string text = lower(from.text());
  job.lora = text == "lora" || text == "qlora" || text == "true";
  if (text == "freeze") job.not_modelled = "which layers are frozen: say so under frozen";
  if (text == "qlora") job.lora_nf4 = true;
}
void take_four_bits(J& job, const Setting& from) {
  if (from.flag()) job.lora_nf4 = true;
}
constexpr const char* kEightBits =
    "frozen weights in 8 bits: lora.base has bf16 and nf4, so their memory and products are those "
    "of 16 bits";
void take_four_bits_count(J& job, const Setting& from) {
  if (from.text() == "4") job.lora_nf4 = true;
  if (from.text() == "8") job.not_modelled = kEightBits;
}
void take_eager_attention(J& job, const Setting& from) {
  if (from.flag()) job.attention = "unfused";
}

/// Names of linear layers as PEFT has them: "q_proj,v_proj", "all-linear".
void take_lora_targets(J& job, const Setting& from) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 12> kNames{
      {{"q_proj", "qkv"},
       {"k_proj", "qkv"},
       {"v_proj", "qkv"},
       {"qkv_proj", "qkv"},
       {"query_key_value", "qkv"},
       {"c_attn", "qkv"},
       {"o_proj", "projection"},
       {"dense", "projection"},
       {"gate_proj", "mlp_up"},
       {"up_proj", "mlp_up"},
       {"gate_up_proj", "mlp_up"},
       {"down_proj", "mlp_down"}}};
  std::string list = lower(from.text());
  std::ranges::replace_if(list, [](char c) { return c == ',' || c == '[' || c == ']'; }, ' ');
  std::vector<std::string> modules;
  constexpr std::array<std::string_view, 5> kParts{"q_proj", "k_proj", "v_proj", "gate_proj",
                                                   "up_proj"};
  const auto note_parts = [&] {
    job.remarks.emplace_back(
        "PEFT gives each of q_proj, k_proj, v_proj, gate_proj and up_proj an adapter of its own; "
        "here q, k and v have one together, whichever of them are named, and so have gate and up: "
        "the number of trained parameters is another");
  };
  bool has_parts = false;
  for (const std::string& name : words_of(list)) {
    if (name == "all" || name == "all-linear" || name == "all_linear") return note_parts();
    has_parts = has_parts || std::ranges::find(kParts, name) != kParts.end();
    const auto* const known = std::ranges::find(kNames, name, [](auto& one) { return one.first; });
    if (known == kNames.end()) {
      job.not_modelled = "which products have an adapter: set lora.modules";
      return;
    }
    modules.emplace_back(known->second);
  }
  std::ranges::sort(modules);
  modules.erase(std::ranges::unique(modules).begin(), modules.end());
  job.lora_modules = std::move(modules);
  if (has_parts) note_parts();
}
void take_all_targets(J& job, const Setting& from) {
  if (from.flag()) job.lora_modules.clear();
}
void take_deepspeed_file(J& job, const Setting& from) {
  const std::string text = lower(from.text());
  if (text.ends_with(".json") || text.ends_with(".yaml")) job.deepspeed_file = from.text();
}
constexpr const char* kPreferences =
    "a step of preference optimisation or of RL: write it under rl";
/// LLaMA-Factory's: pt, sft, rm, ppo, dpo, kto.
void take_training_stage(J& job, const Setting& from) {
  constexpr std::array<std::string_view, 6> kStages{"pt", "sft", "rm", "ppo", "dpo", "kto"};
  const std::string text = lower(from.text());
  if (std::ranges::find(kStages, std::string_view(text)) == kStages.end()) {
    job.not_modelled = "a stage of the script's own: what it does is not known";
    return;
  }
  note_llama_factory(job, "stage");
  if (text != "sft" && text != "pt") job.not_modelled = kPreferences;
}
void take_packing(J& job, const Setting& from) { job.packed = from.flag(); }
/// Axolotl's ring attention.
void take_ring(J& job, const Setting& from) {
  if (from.count(0) < 2) return;
  job.context = from.count();
  job.context_exchange = "ring";
}
void take_exchange(J& job, const Setting& from) {
  if (from.count(0) < 2) return;
  job.context = from.count();
  job.context_exchange = "all_to_all";
}
void take_tp(J& job, const Setting& from) {
  if (from.count(0) > 1) job.tensor = from.count();
}

constexpr std::array kTrainerRows{
    KeyRow{"model_name_or_path base_model model_name pretrained_model_name_or_path model_id model",
           kUsed, take_hf_model},
    KeyRow{"per_device_train_batch_size micro_batch_size", kUsed, take_count<&J::micro>},
    KeyRow{"gradient_accumulation_steps", kUsed, take_count<&J::accumulation>},
    KeyRow{"max_seq_length max_length block_size model_max_length max_seq_len "
           "sequence_len max_source_length seq_length context_length",
           kUsed, take_length},
    KeyRow{"bf16 pure_bf16 bfloat16", kUsed, take_trainer_bf16},
    KeyRow{"cutoff_len", kUsed, take_cutoff},
    KeyRow{"disable_gradient_checkpointing", kUsed, take_no_default_checkpointing},
    KeyRow{"fp8", kUsed, take_trainer_fp8},
    KeyRow{"liger_rms_norm liger_layer_norm flash_attn_rms_norm", kUsed,
           take_one_fused<kFusedNorm>},
    KeyRow{"liger_rope", kUsed, take_one_fused<kFusedRotary>},
    KeyRow{"liger_glu_activation liger_swiglu", kUsed, take_one_fused<kFusedGate>},
    KeyRow{"liger_cross_entropy flash_attn_cross_entropy", kUsed, take_one_fused<kFusedLoss>},
    KeyRow{"liger_fused_linear_cross_entropy cut_cross_entropy", kUsed,
           take_one_fused<kChunkedLoss>},
    KeyRow{"fp16 float16", kUsed, take_trainer_fp16},
    KeyRow{"torch_dtype dtype", kUsed, take_dtype},
    KeyRow{"gradient_checkpointing", kUsed, take_checkpointing},
    KeyRow{"fsdp", kUsed, take_fsdp_words},
    KeyRow{"fsdp_version", kUsed, take_fsdp_version},
    KeyRow{"torch_compile", kUsed, take_compiled},
    KeyRow{"use_liger_kernel use_liger liger_kernel enable_liger_kernel", kUsed, take_liger},
    KeyRow{"lora_r lora_rank", kUsed, take_lora_rank},
    KeyRow{"use_peft use_lora adapter finetuning_type", kUsed, take_adapter},
    KeyRow{"attn_implementation flash_attn", kUsed, take_attention},
    KeyRow{"flash_attention use_flash_attention_2 use_flash_attn sdp_attention "
           "xformers_attention flex_attention",
           kUsed, take_fused_attention},
    KeyRow{"eager_attention", kUsed, take_eager_attention},
    KeyRow{"load_in_4bit", kUsed, take_four_bits},
    KeyRow{"quantization_bit", kUsed, take_four_bits_count},
    KeyRow{"packing sample_packing neat_packing packing_samples", kUsed, take_packing},
    KeyRow{"context_parallel_size sequence_parallel_degree", kUsed, take_ring},
    KeyRow{"ulysses_sequence_parallel_size", kUsed, take_exchange},
    KeyRow{"dp_shard_size", kUsed, take_count<&J::shard>},
    KeyRow{"dp_replicate_size", kUsed, take_count<&J::replicate>},
    KeyRow{"tp_size tensor_parallel_size", kUsed, take_tp},
    KeyRow{"optim optimizer", kUsed, take_optimiser},
    KeyRow{"lora_target lora_target_modules", kUsed, take_lora_targets},
    KeyRow{"lora_target_linear", kUsed, take_all_targets},
    KeyRow{"deepspeed deepspeed_config ds_config deepspeed_config_file", kUsed,
           take_deepspeed_file},

    KeyRow{"stage", kUsed, take_training_stage},
    KeyRow{"template", kUsed, take_template},
    KeyRow{"fp8_enable_fsdp_float8_all_gather", kMatters, nullptr,
           "weights are gathered in 8 bits: set stack.parameter_bytes"},
    KeyRow{"flash_attn_fuse_qkv", kUsed, take_one_fused<kOneQkv>},
    KeyRow{"use_unsloth_gc activation_offloading", kMatters, nullptr,
           "inputs of layers wait on the host: set offload.activation_layers"},
    KeyRow{"s2_attention shift_attn flash_attn_fuse_mlp liger_rms_norm_gated tiled_mlp "
           "mixture_of_depths use_unsloth use_v1_kernels",
           kMatters, nullptr, "an operator that no stack has"},
    KeyRow{"rl trl.* num_generations max_completion_length ref_model reward_* use_vllm vllm_*",
           kMatters, nullptr, kPreferences},
    KeyRow{"load_in_8bit", kMatters, nullptr, kEightBits},
    KeyRow{"optim_args adafactor", kMatters, nullptr, kOtherOptimiser},
    KeyRow{"auto_find_batch_size group_by_length length_column_name", kMatters, nullptr,
           "batches change from step to step"},
    KeyRow{"neftune_noise_alpha use_cache torch_compile_* use_reentrant_gc fp8_backend "
           "liger_use_token_scaling quantization_type double_quantization quantization_method",
           kHarmless},
    KeyRow{"use_rslora use_dora pissa_* "
           "lora_modules_to_save",
           kMatters, nullptr, "which products have an adapter: set lora.modules"},
    KeyRow{"freeze_* train_on_inputs_only unfrozen_parameters", kMatters, nullptr,
           "a part is not trained: say so under frozen"},
    KeyRow{"galore_* use_galore apollo_* use_badam badam_* lisa_*", kMatters, nullptr,
           "an optimiser with states of another size"},
    KeyRow{"fsdp_config.* fsdp_transformer_layer_cls_to_wrap fsdp_min_num_params "
           "local_rank ddp_* "
           "dataloader_* accelerator_config.*",
           kHarmless},
    KeyRow{
        "fsdp_config", kMatters, nullptr,
        "what it sets is not read: say its keys, --set fsdp_config.activation_checkpointing=true"},
    KeyRow{"learning_rate lr lr_* weight_decay adam_* max_grad_norm warmup_* num_train_epochs "
           "num_epochs epochs max_steps max_train_steps seed data_seed full_determinism "
           "label_smoothing_factor tf32 val_size lora_alpha lora_dropout lora_bias "
           "optim_target_modules "
           "gradient_checkpointing_kwargs* loss_type beta betas eps",
           kHarmless},
    KeyRow{"output_dir overwrite_* save_* load_best_model_at_end metric_for_best_model "
           "greater_is_better logging_* log_* report_to run_name do_train do_eval do_predict "
           "eval_* evaluation_strategy per_device_eval_batch_size per_gpu_* prediction_loss_only "
           "push_to_hub hub_* resume_from_checkpoint ignore_data_skip disable_tqdm "
           "remove_unused_columns label_names include_* past_index jit_mode_eval use_ipex "
           "no_cuda use_cpu use_mps_device skip_memory_metrics restore_callback_states_* "
           "average_tokens_across_devices batch_eval_metrics torch_empty_cache_steps "
           "wandb_* plot_loss saves_per_epoch evals_per_epoch hf_token token with_tracking "
           "project_name",
           kHarmless},
    KeyRow{"dataset* data_* train_file validation_file test_file datasets.* test_datasets.* "
           "val_set_size preprocessing_* max_samples max_train_samples max_eval_samples streaming "
           "buffer_size prompt_* chat_template* system_prompt tokenizer* "
           "use_fast_tokenizer use_slow_tokenizer padding_side conversation_template "
           "lazy_preprocess trust_remote_code model_revision config_name cache_dir "
           "add_eos_token special_tokens.* strict train_on_inputs shuffle* mask_history "
           "rope_scaling bnb_* low_cpu_mem_usage keep_linebreaks pad_to_* model_type "
           "tokenizer_type is_*_derived_model resize_vocab num_proc dataset_num_proc "
           "assistant_only_loss completion_only_loss pref_* kto_* simpo_* dpo_* ppo_* rl_beta "
           "padding_free eos_token pad_token plugins ring_attn_func heads_k_stride "
           "max_prompt_length temperature top_p top_k "
           "image_* video_* freeze_vision_tower upcast_* infer_* split_batches debug hub_token",
           kHarmless},
};

}  // namespace
}  // namespace trainer_file

std::span<const KeyRow> trainer_keys() { return trainer_file::kTrainerRows; }

}  // namespace lockstep
