// Keys of torchtune's YAML (meta-pytorch/torchtune, recipes/configs and recipes/*_distributed.py).
#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "sim/launch/key_table.hpp"

namespace lockstep {
namespace torchtune_file {
namespace {

using J = JobSketch;
using M = ModelSketch;
constexpr KeyFate kUsed = KeyFate::used, kHarmless = KeyFate::harmless,
                  kMatters = KeyFate::unmodelled;

/// "torchtune.models.llama3_1.qlora_llama3_1_8b": adapters are in the builder's name. One without a
/// size ("llama3_1") has its sizes beside it.
void take_builder(J& job, const Setting& from) {
  const std::string all = lower(from.text());
  std::string_view name = last_part(all);
  for (const std::string_view adapter : {"qlora_", "lora_", "qdora_", "dora_"}) {
    if (!name.starts_with(adapter)) continue;
    job.lora = true;
    job.lora_nf4 = job.lora_nf4 || adapter.starts_with('q');
    name.remove_prefix(adapter.size());
    break;
  }
  job.model.name = name;
}
// A command says again what its file said: the later value stands alone.

/// q, k and v are one product here.
void take_adapted(J& job, const Setting& from) {
  job.lora = true;
  std::vector<std::string>& modules = job.lora_modules;
  std::erase_if(modules, [](const std::string& m) { return m == "qkv" || m == "projection"; });
  for (const std::string& name : from.values) {
    const std::string_view part = name == "output_proj" ? "projection" : "qkv";
    if (std::ranges::find(modules, part) == modules.end()) modules.emplace_back(part);
  }
}
void take_adapted_mlp(J& job, const Setting& from) {
  std::erase_if(job.lora_modules, [](const std::string& m) { return m.starts_with("mlp_"); });
  if (!from.flag()) return;
  job.lora_modules.emplace_back("mlp_up");
  job.lora_modules.emplace_back("mlp_down");
}
void take_rank(J& job, const Setting& from) { job.lora_rank = from.count(); }
void take_quantised_base(J& job, const Setting& from) { job.lora_nf4 = from.flag(); }
void take_tune_length(J& job, const Setting& from) {
  if (!from.is_null()) job.tokens = from.count();
}
void take_packed(J& job, const Setting& from) { job.packed = from.flag(); }
void take_tune_optimiser(J& job, const Setting& from) {
  if (last_part(lower(from.text())) == "cpuoffloadoptimizer") {
    job.offload_optimizer = 1;
    return;
  }
  take_optimiser(job, from);
}
constexpr const char* kChunked = "chunked_cross_entropy";
void take_loss(J& job, const Setting& from) {
  const std::string text = lower(from.text());
  const auto has = [&](std::string_view word) { return text.find(word) != std::string::npos; };
  if (has("rlhf") || has("dpo") || has("ppo") || has("grpo")) {
    job.not_modelled = "a step of preference optimisation or of RL: write it under rl";
  } else if (has("kd") || has("divergence")) {
    job.not_modelled = "a teacher runs beside the model";
  } else {
    job.stack_switches[kChunked] = has("chunked") || has("linearcrossentropy");
  }
}
void take_tune_checkpointing(J& job, const Setting& from) {
  job.recompute = from.flag() ? "full" : "none";
}
/// Off it leaves an optimiser on the host that is there by its own class.
void take_tune_offload(J& job, const Setting& from) {
  if (from.flag()) {
    job.offload_optimizer = 1;
  } else if (job.offload_parameters) {
    job.offload_optimizer.reset();
  }
  job.offload_parameters = from.flag();
}
void take_tune_strategy(J& job, const Setting& from) {
  if (!from.is_null() && !take_fsdp_name(job, lower(from.text()))) {
    from.fail("FULL_SHARD, SHARD_GRAD_OP, NO_SHARD, HYBRID_SHARD");
  }
}
void take_tune_dtype(J& job, const Setting& from) {
  const std::string text = lower(from.text());
  if (job.precision != "fp8") job.precision = text == "fp16" ? "fp16" : "bf16";
  if (text == "fp32") job.not_modelled = "trains in fp32; bf16 is simulated";
}
void take_tune_fp8(J& job, const Setting& from) {
  if (from.flag()) {
    job.precision = "fp8";
  } else if (job.precision == "fp8") {
    job.precision = "bf16";
  }
}
void take_tune_compile(J& job, const Setting& from) {
  if (from.flag()) {
    job.stack_switches["torch_compile"] = true;
  } else {
    job.stack_switches.erase("torch_compile");
  }
}
void take_tune_shards(J& job, const Setting& from) {
  const auto shards = static_cast<int>(from.integer(-1, 100'000'000));
  if (shards == 0) from.fail("a whole number from 1, or -1");
  job.shard = shards;
}
void take_tune_exchange(J& job, const Setting& from) {
  job.context_exchange = lower(from.text()) == "alltoall" ? "ring" : "all_gather";
}

constexpr std::array kTorchtuneRows{
    KeyRow{"model._component_", kUsed, take_builder},
    KeyRow{"model.num_layers", kUsed, take_model_count<&M::layers>},
    KeyRow{"model.embed_dim", kUsed, take_model_count<&M::hidden>},
    KeyRow{"model.intermediate_dim", kUsed, take_model_count<&M::ffn>},
    KeyRow{"model.num_heads", kUsed, take_model_count<&M::heads>},
    KeyRow{"model.num_kv_heads", kUsed, take_model_count<&M::query_groups>},
    KeyRow{"model.head_dim", kUsed, take_model_count<&M::head_dim>},
    KeyRow{"model.vocab_size", kUsed, take_model_count<&M::vocabulary>},
    KeyRow{"model.tie_word_embeddings", kUsed, take_model_flag<&M::tied>},
    KeyRow{"model.lora_attn_modules", kUsed, take_adapted},
    KeyRow{"model.apply_lora_to_mlp", kUsed, take_adapted_mlp},
    KeyRow{"model.lora_rank", kUsed, take_rank},
    KeyRow{"model.quantize_base", kUsed, take_quantised_base},
    KeyRow{"tokenizer.max_seq_len dataset.max_seq_len max_seq_len", kUsed, take_tune_length},
    KeyRow{"dataset.packed packed", kUsed, take_packed},
    KeyRow{"batch_size", kUsed, take_count<&J::micro>},
    KeyRow{"gradient_accumulation_steps", kUsed, take_count<&J::accumulation>},
    KeyRow{"optimizer._component_", kUsed, take_tune_optimiser},
    KeyRow{"loss._component_", kUsed, take_loss},
    KeyRow{"enable_activation_checkpointing", kUsed, take_tune_checkpointing},
    KeyRow{"fsdp_cpu_offload fsdp.cpu_offload", kUsed, take_tune_offload},
    KeyRow{"fsdp_reshard_after_forward", kUsed, take_flag<&J::reshard>},
    KeyRow{"fsdp_sharding_strategy", kUsed, take_tune_strategy},
    KeyRow{"dtype", kUsed, take_tune_dtype},
    KeyRow{"enable_fp8_training", kUsed, take_tune_fp8},
    KeyRow{"compile compile.model", kUsed, take_tune_compile},
    KeyRow{"tensor_parallel_dim", kUsed, take_count<&J::tensor>},
    KeyRow{"context_parallel_dim", kUsed, take_count<&J::context>},
    KeyRow{"expert_parallel_dim", kUsed, take_count<&J::expert>},
    KeyRow{"context_parallel_rotate_method", kUsed, take_tune_exchange},
    KeyRow{"data_parallel_shard_dim", kUsed, take_tune_shards},
    KeyRow{"data_parallel_replicate_dim", kUsed, take_count<&J::replicate>},

    KeyRow{"optimizer_in_bwd", kMatters, nullptr,
           "the optimiser steps within the backward pass, and gradients go as they are used"},
    KeyRow{"enable_activation_offloading", kMatters, nullptr,
           "inputs of layers wait on the host: set offload.activation_layers"},
    KeyRow{"ac_mode ac_option", kMatters, nullptr, "which layers are checkpointed: set recompute"},
    KeyRow{"model.apply_lora_to_output model.use_dora", kMatters, nullptr,
           "which products have an adapter: set lora.modules"},
    KeyRow{"quantizer._component_ quantizer.* fake_quant_after_n_steps", kMatters, nullptr,
           "weights are quantised and back in every product: no stack has it"},
    KeyRow{"teacher_model._component_ teacher_model.* kd_ratio kd_loss.* ref_checkpointer.* "
           "reward_checkpointer.* rlhf_loss.* reward_model.* grpo_samples num_generations "
           "inference.* orchestration.* ref_policy.* policy.*",
           kMatters, nullptr, "other models run beside the one that is trained: write it under rl"},
    KeyRow{"memory_efficient_fsdp_wrap custom_sharded_layers fp8_recipe_name "
           "fsdp_forward_prefetch",
           kHarmless},
    KeyRow{"model.* tokenizer.* dataset.* dataset_val.* datasets.* optimizer.* loss.* "
           "checkpointer.* lr_scheduler.* metric_logger.* profiler.* compile.* fsdp.* "
           "tensor_parallel_plan.* parallelize_plan.* qat_* collate_fn shuffle seed epochs "
           "max_steps_per_epoch clip_grad_norm resume_from_checkpoint save_* should_* "
           "output_dir log_* device cudnn_deterministic_mode num_output_chunks "
           "activation_offloading_* enable_async_checkpointing run_val_every_n_steps "
           "batch_size_val checkpoint* base_model* model_type kv_cache* prompt* max_new_tokens "
           "temperature top_k use_clean config dataloader.* epochs_to_save keep_last_n_checkpoints "
           "loss_parallel adapter_* teacher_checkpointer.*",
           kHarmless},
};

}  // namespace
}  // namespace torchtune_file

std::span<const KeyRow> torchtune_keys() { return torchtune_file::kTorchtuneRows; }

}  // namespace lockstep
