// Keys of Megatron-LM's arguments that a scenario says; NeMo and Megatron-Bridge have them with
// "_".
#include <algorithm>
#include <array>
#include <fmt/format.h>

#include "sim/launch/key_table.hpp"
#include "sim/launch/layer_lists.hpp"

namespace lockstep {
namespace megatron_file {
namespace {

using J = JobSketch;
using M = ModelSketch;
constexpr KeyFate kUsed = KeyFate::used;

void take_virtual_pipeline(J& job, const Setting& from) {
  if (!from.is_null()) job.virtual_stages = from.count();
}
void take_optional_virtual_layers(J& job, const Setting& from) {
  if (!from.is_null()) job.layers_per_virtual_stage = from.count();
}

/// The last step of a ramp is what training goes on with, which global_batch_size says.
void take_ramp(J& job, const Setting& from) {
  if (from.is_off()) return;
  job.remarks.push_back(fmt::format("{} {}: its last value counts", from.key, from.text()));
  const std::string last = from.values.back();
  const std::size_t colon = last.rfind(':');
  std::int64_t whole = 0;
  if (from.values.size() == 1 && colon == std::string::npos) return;
  if (colon != std::string::npos && !job.sequences && parse_whole(last.substr(colon + 1), whole)) {
    job.sequences = static_cast<int>(std::clamp<std::int64_t>(whole, 1, 100'000'000));
  }
}

void take_distributed_optimizer(J& job, const Setting& from) {
  job.distributed_optimizer = from.flag();
}

void take_sharding_strategy(J& job, const Setting& from) {
  const std::string text = lower(from.text());
  if (text == "optim_grads_params") {
    job.megatron_fsdp_strategy = "zero3";
  } else if (text == "optim_grads") {
    job.megatron_fsdp_strategy = "zero2";
  } else if (text == "optim") {
    job.megatron_fsdp_strategy = "zero1";
  } else if (text == "no_shard") {
    job.megatron_fsdp_strategy = "none";
  } else {
    from.fail("no_shard, optim, optim_grads, optim_grads_params");
  }
}

void take_fsdp2(J& job, const Setting& from) {
  if (!from.flag()) return;
  job.sharding = "zero3";
  job.torch_fsdp2 = true;
}

/// Megatron-Bridge has it in two sections, of which one suffices.
void take_megatron_fsdp(J& job, const Setting& from) {
  if (from.flag()) job.megatron_fsdp = true;
}

void take_optimizer_instances(J& job, const Setting& from) { job.shard_copies = from.count(); }

void take_cp_comm(J& job, const Setting& from) {
  const std::string text = lower(from.values.empty() ? "" : from.values.front());
  if (from.is_null()) return;
  if (text == "p2p" || text == "a2a+p2p") {
    job.context_exchange = "ring";
  } else if (text == "a2a") {
    job.context_exchange = "all_to_all";
  } else if (text == "all_gather" || text == "allgather") {
    job.context_exchange = "all_gather";
  } else {
    from.fail("p2p, a2a, all_gather, a2a+p2p");
  }
}

void take_dispatcher(J& job, const Setting& from) {
  const std::string text = lower(from.text());
  job.expert_dispatch = text == "flex" ? "two_level" : "all_to_all";
  if (text == "allgather")
    job.remarks.emplace_back("token dispatcher allgather: taken as alltoall");
}

void take_deepep(J& job, const Setting& from) {
  if (from.flag()) job.expert_dispatch = "two_level";
}

void take_bf16(J& job, const Setting& from) {
  if (from.flag() && job.precision.empty()) job.precision = "bf16";
}
void take_fp16(J& job, const Setting& from) {
  if (from.flag() && job.precision.empty()) job.precision = "fp16";
}

void take_fp8(J& job, const Setting& from) {
  if (from.is_off()) return;
  if (job.precision != "mxfp8" && job.precision != "nvfp4") job.precision = "fp8";
}

void take_fp8_recipe(J& job, const Setting& from) {
  if (from.is_off()) return;
  const std::string text = lower(from.text());
  if (text == "mxfp8") {
    job.precision = "mxfp8";
  } else if (text != "delayed" && text != "tensorwise") {
    job.remarks.push_back(fmt::format("fp8 recipe {}: taken as fp8", text));
  }
}

void take_fp4(J& job, const Setting& from) {
  if (!from.is_off()) job.precision = "nvfp4";
}

/// "bf16-mixed", 16, "bf16_with_mxfp8_mixed": NeMo's and Megatron-Bridge's names.
void take_precision(J& job, const Setting& from) {
  const std::string text = lower(from.text());
  if (text.find("nvfp4") != std::string::npos) {
    job.precision = "nvfp4";
  } else if (text.find("mxfp8") != std::string::npos) {
    job.precision = "mxfp8";
  } else if (text.find("fp8") != std::string::npos) {
    job.precision = "fp8";
  } else if (!job.precision.empty()) {
    return;
  } else if (text.find("bf16") != std::string::npos || text.find("bfloat16") != std::string::npos) {
    job.precision = "bf16";
  } else if (text.starts_with("16") || text.find("fp16") != std::string::npos) {
    job.precision = "fp16";
  } else {
    job.remarks.push_back(fmt::format("precision {}: taken as bf16", text));
  }
}

void take_granularity(J& job, const Setting& from) {
  if (from.is_null()) return;
  const std::string text = lower(from.text());
  if (text != "full" && text != "selective" && text != "none") from.fail("full, selective");
  job.recompute = text;
}

void take_full_recompute(J& job, const Setting& from) {
  if (from.flag()) job.recompute = "full";
}
void take_selective_recompute(J& job, const Setting& from) {
  if (from.flag() && job.recompute.empty()) job.recompute = "selective";
}

void take_modules(J& job, const Setting& from) {
  if (from.is_null()) return;
  for (const std::string& value : from.values) {
    std::string list = value;
    std::ranges::replace(list, ',', ' ');
    for (const std::string& name : words_of(list)) job.recompute_modules.push_back(lower(name));
  }
}

void take_recompute_layers(J& job, const Setting& from) {
  if (!from.is_null()) job.recompute_layers = from.count(0);
}
void take_recompute_method(J& job, const Setting& from) {
  if (!from.is_null()) job.recompute_every_layer = lower(from.text()) == "uniform";
}
/// Until 2022 Megatron-LM had this argument alone, and it switched full recomputation on
/// (megatron/arguments.py of v2.6); a granularity beside it counts more. NeMo's key of this name
/// needs one.
void take_old_method(J& job, const Setting& from) {
  take_recompute_method(job, from);
  const bool alone = from.key.starts_with('-') && !from.is_off();
  if (alone && job.recompute.empty()) job.recompute = "full";
}

/// Megatron's own layers have no fused attention but by a flag of its own
/// (megatron/core/models/gpt/ gpt_layer_specs.py: get_gpt_layer_local_spec).
void take_implementation(J& job, const Setting& from) {
  if (lower(from.text()) == "local" && job.attention.empty()) job.attention = "unfused";
}

void take_cpu_offload(J& job, const Setting& from) {
  if (from.flag() && !job.offload_optimizer) job.offload_optimizer = 1;
}
void take_offload_fraction(J& job, const Setting& from) {
  const double share = from.number();
  if (share < 0 || share > 1) from.fail("a share from 0 to 1");
  if (job.offload_optimizer) job.offload_optimizer = share;
}
void take_offload_layers(J& job, const Setting& from) {
  if (!from.is_off()) job.offload_layers = from.count(0);
}

void take_capacity(J& job, const Setting& from) {
  if (!from.is_null()) job.capacity_factor = from.number();
}
void take_padded(J& job, const Setting& from) { job.pad_to_capacity = from.flag(); }

void take_tp_overlap(J& job, const Setting& from) {
  job.tensor_overlap = from.flag() ? "pieces" : "none";
}

void take_grad_overlap(J& job, const Setting& from) {
  job.communication["overlap_gradients"] = from.flag();
}
void take_param_overlap(J& job, const Setting& from) {
  job.communication["overlap_parameters"] = from.flag();
}
void take_p2p_overlap(J& job, const Setting& from) {
  job.communication["overlap_pipeline"] = from.flag();
}
void take_no_p2p_overlap(J& job, const Setting& from) {
  job.communication["overlap_pipeline"] = !from.flag();
}
void take_sharp(J& job, const Setting& from) { job.communication["sharp"] = from.flag(); }

template <const char* const& Name>
void take_no_switch(J& job, const Setting& from) {
  job.stack_switches[Name] = !from.flag();
}
/// In 2022 it had to be asked for.
template <const char* const& Name>
void take_switch(J& job, const Setting& from) {
  job.stack_switches[Name] = from.flag();
}
constexpr const char* kAccumulationFusion = "gradient_accumulation_fusion";
constexpr const char* kSwigluFusion = "fused_swiglu";
constexpr const char* kBiasDropoutFusion = "fused_bias_dropout";
constexpr const char* kRopeFusion = "fused_rope";

void take_bf16_gradients(J& job, const Setting& from) { job.bf16_gradients = from.flag(); }
void take_fp32_gradients(J& job, const Setting& from) { job.bf16_gradients = !from.flag(); }

void take_cross_entropy(J& job, const Setting& from) {
  job.stack_switches["fused_cross_entropy"] = from.flag();
}

void take_ffn(J& job, const Setting& from) {
  if (!from.is_null()) job.model.ffn = from.count();
}
void take_kv_channels(J& job, const Setting& from) {
  if (!from.is_null()) job.model.head_dim = from.count();
}
void take_query_groups(J& job, const Setting& from) {
  if (!from.is_null()) job.model.query_groups = from.count();
}
/// NeMo's word for it, "fast-swiglu"; Megatron-Bridge's gated_linear_unit is a flag.
void take_activation(J& job, const Setting& from) {
  job.model.gated = lower(from.text()).find("glu") != std::string::npos;
}
void take_position_kind(J& job, const Setting& from) {
  job.model.position_kind = lower(from.text());
}
void take_rotary(J& job, const Setting& from) {
  if (from.flag()) job.model.position_kind = "rope";
}
void take_tokenizer_kind(J& job, const Setting& from) { job.model.tokenizer = from.text(); }
void take_tokenizer(J& job, const Setting& from) { job.model.hint = from.text(); }
/// The words of GPT-2 are known by the name of their file.
void take_vocab_file(J& job, const Setting& from) {
  if (job.model.tokenizer.empty() && lower(from.text()).find("gpt2") != std::string::npos) {
    job.model.tokenizer = "gpt2";
  }
}
void take_ulysses(J& job, const Setting& from) {
  job.context = from.count();
  job.context_exchange = "all_to_all";
}
void take_no_group(J& job, const Setting& from) { job.model.grouped = from.flag(); }

void take_expert_layers(J& job, const Setting& from) { read_expert_layers(from, job.model); }
void take_top_k(J& job, const Setting& from) { job.model.expert_top = from.count(); }
/// A pyramid of experts (Megatron-DeepSpeed's PR-MoE) has a number for each layer that has some.
void take_experts(J& job, const Setting& from) {
  int most = 0;
  for (const std::string& value : from.values) {
    const Setting one{from.key, {value}, from.file};
    if (!one.is_off()) most = std::max(most, one.count());
  }
  if (most > 1) job.model.experts = most;
  if (from.values.size() > 1) {
    job.not_modelled = "another number of experts in other layers: all have the most";
  }
}
void take_expert_ffn(J& job, const Setting& from) {
  if (!from.is_null()) job.model.expert_ffn = from.count();
}
void take_shared_ffn(J& job, const Setting& from) {
  if (!from.is_off()) job.model.expert_shared_ffn = from.count();
}
void take_query_rank(J& job, const Setting& from) {
  if (!from.is_off()) job.model.query_rank = from.count();
}
void take_mtp(J& job, const Setting& from) {
  if (!from.is_off()) job.model.predicted_tokens = from.count();
}
void take_pattern(J& job, const Setting& from) { read_hybrid_pattern(from, job.model); }
void take_stage_layout(J& job, const Setting& from) {
  if (!from.is_null()) read_stage_layout(from, job);
}
void take_window(J& job, const Setting& from) {
  if (from.is_null()) return;
  Setting first = from;
  std::erase_if(first.values[0], [](char c) { return c == '(' || c == '['; });
  first.values = {first.values[0].substr(0, first.values[0].find(','))};
  if (first.values[0] != "-1") job.model.window = first.count();
}

void take_account_embedding(J& job, const Setting& from) {
  if (from.flag()) job.embedding = "layer";
}
void take_account_loss(J& job, const Setting& from) {
  if (from.flag()) job.output = "layer";
}
void take_first_layers(J& job, const Setting& from) {
  if (!from.is_null()) job.first_layers = from.count();
}
void take_last_layers(J& job, const Setting& from) {
  if (!from.is_null()) job.last_layers = from.count();
}
void take_standalone_embedding(J& job, const Setting& from) {
  if (from.flag()) job.embedding = "stage";
}
void take_expert_tensor(J& job, const Setting& from) {
  if (!from.is_null()) job.expert_tensor = from.count();
}
void take_samples_packed(J& job, const Setting& from) { job.packed = from.flag(); }
/// What the vocabulary comes to, padding included: of BigScience's fork, and of Megatron-Bridge.
void take_padded_vocabulary(J& job, const Setting& from) {
  if (from.is_null()) return;
  job.model.vocabulary = from.count();
  job.model.vocabulary_is_padded = true;
}
void take_whether_padded(J& job, const Setting& from) {
  job.model.vocabulary_is_padded = !from.flag();
}
void take_yes_untied(J& job, const Setting& from) { job.model.tied = !from.flag(); }

constexpr std::array kMegatronRows{
    // Of slime and miles, whose trainer has Megatron-LM's arguments.
    KeyRow{"actor_num_nodes", kUsed, take_count<&J::nodes>},
    KeyRow{"actor_num_gpus_per_node", kUsed, take_count<&J::node_gpus>},
    KeyRow{"tensor_model_parallel_size model_parallel_size", kUsed, take_count<&J::tensor>},
    KeyRow{"pipeline_model_parallel_size", kUsed, take_count<&J::pipeline>},
    KeyRow{"context_parallel_size", kUsed, take_count<&J::context>},
    KeyRow{"expert_model_parallel_size", kUsed, take_count<&J::expert>},
    KeyRow{"expert_tensor_parallel_size", kUsed, take_expert_tensor},
    KeyRow{"virtual_pipeline_model_parallel_size num_virtual_stages_per_pipeline_rank", kUsed,
           take_virtual_pipeline},
    KeyRow{"num_layers_per_virtual_pipeline_stage", kUsed, take_optional_virtual_layers},
    KeyRow{"pipeline_model_parallel_layout", kUsed, take_stage_layout},
    KeyRow{"decoder_first_pipeline_num_layers num_layers_in_first_pipeline_stage", kUsed,
           take_first_layers},
    KeyRow{"decoder_last_pipeline_num_layers num_layers_in_last_pipeline_stage", kUsed,
           take_last_layers},
    KeyRow{"account_for_embedding_in_pipeline_split", kUsed, take_account_embedding},
    KeyRow{"account_for_loss_in_pipeline_split", kUsed, take_account_loss},
    KeyRow{"standalone_embedding_stage", kUsed, take_standalone_embedding},
    KeyRow{"sequence_parallel", kUsed, take_flag<&J::sequence>},
    KeyRow{"cp_comm_type", kUsed, take_cp_comm},
    KeyRow{"optimizer", kUsed, take_optimiser},
    KeyRow{"use_distributed_optimizer", kUsed, take_distributed_optimizer},
    KeyRow{"data_parallel_sharding_strategy", kUsed, take_sharding_strategy},
    KeyRow{"use_torch_fsdp2", kUsed, take_fsdp2},
    KeyRow{"torch_fsdp2_no_reshard_after_forward", kUsed, take_flag<&J::torch_fsdp2_keeps_weights>},
    KeyRow{"use_megatron_fsdp use_custom_fsdp", kUsed, take_megatron_fsdp},
    KeyRow{"num_distributed_optimizer_instances", kUsed, take_optimizer_instances},
    KeyRow{"moe_token_dispatcher_type", kUsed, take_dispatcher},
    KeyRow{"moe_enable_deepep", kUsed, take_deepep},
    KeyRow{"overlap_moe_expert_parallel_comm", kUsed, take_flag<&J::expert_overlap>},
    KeyRow{"micro_batch_size batch_size", kUsed, take_count<&J::micro>},
    KeyRow{"global_batch_size", kUsed, take_count<&J::sequences>},
    KeyRow{"rampup_batch_size step_batch_size_schedule", kUsed, take_ramp},
    KeyRow{"seq_length encoder_seq_length", kUsed, take_count<&J::tokens>},
    KeyRow{"bf16", kUsed, take_bf16},
    KeyRow{"fp16", kUsed, take_fp16},
    KeyRow{"fp8 fp8_format", kUsed, take_fp8},
    KeyRow{"fp8_recipe", kUsed, take_fp8_recipe},
    KeyRow{"fp4 fp4_format", kUsed, take_fp4},
    KeyRow{"precision mixed_precision", kUsed, take_precision},
    KeyRow{"recompute_granularity activations_checkpoint_granularity", kUsed, take_granularity},
    KeyRow{"recompute_activations", kUsed, take_selective_recompute},
    KeyRow{"checkpoint_activations", kUsed, take_full_recompute},
    KeyRow{"recompute_modules", kUsed, take_modules},
    KeyRow{"attention_backend", kUsed, take_attention},
    KeyRow{"transformer_impl", kUsed, take_implementation},
    KeyRow{"use_flash_attn use_flash_attention use_flash_attn_v1 use_flash_attn_v2", kUsed,
           take_fused_attention},
    KeyRow{"recompute_num_layers activations_checkpoint_num_layers", kUsed, take_recompute_layers},
    KeyRow{"recompute_method", kUsed, take_recompute_method},
    KeyRow{"activations_checkpoint_method", kUsed, take_old_method},
    KeyRow{"optimizer_cpu_offload cpu_optimizer", kUsed, take_cpu_offload},
    KeyRow{"optimizer_offload_fraction", kUsed, take_offload_fraction},
    KeyRow{"cpu_offloading_num_layers", kUsed, take_offload_layers},
    KeyRow{"moe_expert_capacity_factor", kUsed, take_capacity},
    KeyRow{"moe_pad_expert_input_to_capacity", kUsed, take_padded},
    KeyRow{"tp_comm_overlap ub_tp_comm_overlap", kUsed, take_tp_overlap},
    KeyRow{"overlap_grad_reduce overlap_grad_sync", kUsed, take_grad_overlap},
    KeyRow{"overlap_param_gather overlap_param_sync", kUsed, take_param_overlap},
    KeyRow{"grad_reduce_in_bf16", kUsed, take_bf16_gradients},
    KeyRow{"grad_reduce_in_fp32 accumulate_allreduce_grads_in_fp32", kUsed, take_fp32_gradients},
    KeyRow{"overlap_p2p_comm", kUsed, take_p2p_overlap},
    KeyRow{"no_overlap_p2p_communication", kUsed, take_no_p2p_overlap},
    KeyRow{"use_sharp sharp", kUsed, take_sharp},
    KeyRow{"gradient_accumulation_fusion", kUsed, take_switch<kAccumulationFusion>},
    KeyRow{"no_gradient_accumulation_fusion", kUsed, take_no_switch<kAccumulationFusion>},
    KeyRow{"no_bias_swiglu_fusion", kUsed, take_no_switch<kSwigluFusion>},
    KeyRow{"no_bias_dropout_fusion", kUsed, take_no_switch<kBiasDropoutFusion>},
    KeyRow{"no_rope_fusion", kUsed, take_no_switch<kRopeFusion>},
    KeyRow{"cross_entropy_loss_fusion", kUsed, take_cross_entropy},
    KeyRow{"num_layers", kUsed, take_model_count<&M::layers>},
    KeyRow{"hidden_size", kUsed, take_model_count<&M::hidden>},
    KeyRow{"ffn_hidden_size", kUsed, take_ffn},
    KeyRow{"num_attention_heads", kUsed, take_model_count<&M::heads>},
    KeyRow{"group_query_attention", kUsed, take_no_group},
    KeyRow{"num_query_groups", kUsed, take_query_groups},
    KeyRow{"kv_channels", kUsed, take_kv_channels},
    KeyRow{"vocab_size", kUsed, take_model_count<&M::vocabulary>},
    KeyRow{"pad_vocab_size_to padded_vocab_size", kUsed, take_padded_vocabulary},
    KeyRow{"should_pad_vocab", kUsed, take_whether_padded},
    KeyRow{"make_vocab_size_divisible_by", kUsed, take_model_count<&M::vocabulary_multiple>},
    KeyRow{"max_position_embeddings", kUsed, take_model_count<&M::positions>},
    KeyRow{"position_embedding_type", kUsed, take_position_kind},
    KeyRow{"use_rotary_position_embeddings", kUsed, take_rotary},
    KeyRow{"swiglu gated_linear_unit", kUsed, take_model_flag<&M::gated>},
    KeyRow{"activation", kUsed, take_activation},
    KeyRow{"disable_bias_linear", kUsed, take_model_no<&M::biases>},
    KeyRow{"bias add_bias_linear", kUsed, take_model_flag<&M::biases>},
    KeyRow{"untie_embeddings_and_output_weights", kUsed, take_yes_untied},
    KeyRow{"share_embeddings_and_output_weights", kUsed, take_model_flag<&M::tied>},
    KeyRow{"tokenizer_type", kUsed, take_tokenizer_kind},
    KeyRow{"tokenizer_model", kUsed, take_tokenizer},
    KeyRow{"vocab_file tokenizer.vocab_file", kUsed, take_vocab_file},
    KeyRow{"ds_sequence_parallel_size", kUsed, take_ulysses},
    KeyRow{"num_experts num_moe_experts", kUsed, take_experts},
    KeyRow{"moe_router_topk", kUsed, take_top_k},
    KeyRow{"moe_ffn_hidden_size", kUsed, take_expert_ffn},
    KeyRow{"moe_shared_expert_intermediate_size", kUsed, take_shared_ffn},
    KeyRow{"moe_latent_size", kUsed, take_model_count<&M::expert_latent>},
    KeyRow{"moe_layer_freq", kUsed, take_expert_layers},
    KeyRow{"multi_latent_attention", kUsed, take_model_flag<&M::latent_attention>},
    KeyRow{"q_lora_rank", kUsed, take_query_rank},
    KeyRow{"kv_lora_rank", kUsed, take_model_count<&M::key_value_rank>},
    KeyRow{"qk_head_dim", kUsed, take_model_count<&M::nope_dim>},
    KeyRow{"qk_pos_emb_head_dim", kUsed, take_model_count<&M::rope_dim>},
    KeyRow{"v_head_dim", kUsed, take_model_count<&M::value_dim>},
    KeyRow{"mtp_num_layers", kUsed, take_mtp},
    KeyRow{"window_size", kUsed, take_window},
    KeyRow{"hybrid_layer_pattern hybrid_override_pattern", kUsed, take_pattern},
    KeyRow{"mamba_state_dim", kUsed, take_model_count<&M::mamba_state>},
    KeyRow{"mamba_head_dim", kUsed, take_model_count<&M::mamba_head_dim>},
    KeyRow{"mamba_num_groups", kUsed, take_model_count<&M::mamba_groups>},
    KeyRow{"mamba_num_heads", kUsed, take_model_count<&M::mamba_heads>},
    KeyRow{"enable_in_batch_packing packed_sequence", kUsed, take_samples_packed},
};

}  // namespace
}  // namespace megatron_file

std::span<const KeyRow> megatron_keys() { return megatron_file::kMegatronRows; }

}  // namespace lockstep
