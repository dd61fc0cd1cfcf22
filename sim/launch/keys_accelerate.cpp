// Keys of Accelerate's YAML. The Trainer's fsdp_config has them too, also without "fsdp_".
#include <array>
#include <fmt/format.h>
#include <string_view>

#include "sim/launch/key_table.hpp"

namespace lockstep {
namespace accelerate_file {
namespace {

using J = JobSketch;
constexpr KeyFate kUsed = KeyFate::used, kHarmless = KeyFate::harmless,
                  kMatters = KeyFate::unmodelled;

void take_mixed(J& job, const Setting& from) {
  job.accelerate_precision = from.is_off() ? "no" : lower(from.text());
}

/// What trains; what it is configured by has keys of its own.
void take_type(J& job, const Setting& from) {
  const std::string text = lower(from.text());
  if (text == "fsdp" && !job.fsdp_version) job.fsdp_version = 1;
  if (text == "fsdp" && job.sharding.empty()) job.sharding = "zero3";
  if (text == "deepspeed" && !job.zero_stage) job.zero_stage = 2;
}

/// Names, or the numbers that older files have.
void take_strategy(J& job, const Setting& from) {
  constexpr std::array<std::string_view, 5> kNumbered{"full_shard", "shard_grad_op", "no_shard",
                                                      "hybrid_shard", "hybrid_shard_zero2"};
  std::string text = lower(from.text());
  if (text.size() == 1 && text[0] >= '1' && text[0] <= '5') {
    text = kNumbered.at(static_cast<std::size_t>(text[0] - '1'));
  }
  if (!take_fsdp_name(job, text)) {
    from.fail("FULL_SHARD, SHARD_GRAD_OP, NO_SHARD, HYBRID_SHARD, HYBRID_SHARD_ZERO2");
  }
}
/// FSDP-2 has a flag in place of the strategy.
void take_reshard(J& job, const Setting& from) {
  const std::string text = lower(from.text());
  if (text == "true" || text == "false") {
    job.sharding = "zero3";
    job.reshard = text == "true";
  } else {
    take_strategy(job, from);
  }
}
void take_offload(J& job, const Setting& from) {
  if (!from.flag()) return;
  job.offload_optimizer = 1;
  job.offload_parameters = true;
}
void take_checkpointing(J& job, const Setting& from) {
  if (from.flag()) job.fsdp_checkpointing = true;
}
void take_prefetch(J& job, const Setting& from) {
  if (!from.is_null() && lower(from.text()) == "no_prefetch") {
    job.remarks.push_back(from.key + " NO_PREFETCH: set parallelism.prefetch 0");
  }
}
void take_compile(J& job, const Setting& from) {
  if (!from.is_off()) job.stack_switches["torch_compile"] = true;
}
void take_distributed_optimizer(J& job, const Setting& from) {
  job.distributed_optimizer = from.flag();
}
void take_recompute(J& job, const Setting& from) {
  if (from.flag()) job.recompute = "selective";
}

void take_exchange(J& job, const Setting& from) {
  job.context_exchange = lower(from.text()) == "alltoall" ? "ring" : "all_gather";
}

/// Without the section's name: options of `accelerate launch`.
constexpr std::array kAccelerateRows{
    KeyRow{"num_machines", kUsed, take_count<&J::nodes>},
    KeyRow{"num_processes", kUsed, take_count<&J::gpus>},
    KeyRow{"mixed_precision", kUsed, take_mixed},
    KeyRow{"distributed_type", kUsed, take_type},
    KeyRow{"gradient_accumulation_steps deepspeed_config.gradient_accumulation_steps", kUsed,
           take_count<&J::accumulation>},
    KeyRow{
        "fsdp_config.fsdp_sharding_strategy fsdp_config.sharding_strategy fsdp_sharding_strategy",
        kUsed, take_strategy},
    KeyRow{"fsdp_config.fsdp_reshard_after_forward fsdp_config.reshard_after_forward "
           "fsdp_reshard_after_forward",
           kUsed, take_reshard},
    KeyRow{"fsdp_config.fsdp_version fsdp_config.version fsdp_version", kUsed,
           take_count<&J::fsdp_version>},
    KeyRow{"fsdp_config.fsdp_offload_params fsdp_config.fsdp_cpu_offload "
           "fsdp_config.offload_params fsdp_config.cpu_offload fsdp_offload_params",
           kUsed, take_offload},
    KeyRow{"fsdp_config.fsdp_activation_checkpointing fsdp_config.activation_checkpointing "
           "fsdp_activation_checkpointing",
           kUsed, take_checkpointing},
    KeyRow{"fsdp_config.fsdp_backward_prefetch fsdp_config.fsdp_backward_prefetch_policy "
           "fsdp_config.backward_prefetch",
           kUsed, take_prefetch},
    KeyRow{"parallelism_config.parallelism_config_dp_replicate_size "
           "parallelism_config_dp_replicate_size",
           kUsed, take_count<&J::replicate>},
    KeyRow{"parallelism_config.parallelism_config_dp_shard_size parallelism_config_dp_shard_size",
           kUsed, take_count<&J::shard>},
    KeyRow{"parallelism_config.parallelism_config_tp_size parallelism_config_tp_size", kUsed,
           take_count<&J::tensor>},
    KeyRow{"parallelism_config.parallelism_config_cp_size parallelism_config_cp_size", kUsed,
           take_count<&J::context>},
    KeyRow{"megatron_lm_config.megatron_lm_tp_degree megatron_lm_tp_degree", kUsed,
           take_count<&J::tensor>},
    KeyRow{"megatron_lm_config.megatron_lm_pp_degree megatron_lm_pp_degree", kUsed,
           take_count<&J::pipeline>},
    KeyRow{"megatron_lm_config.megatron_lm_sequence_parallelism megatron_lm_sequence_parallelism",
           kUsed, take_flag<&J::sequence>},
    KeyRow{"megatron_lm_config.megatron_lm_use_distributed_optimizer "
           "megatron_lm_use_distributed_optimizer",
           kUsed, take_distributed_optimizer},
    KeyRow{"megatron_lm_config.megatron_lm_recompute_activations megatron_lm_recompute_activations",
           kUsed, take_recompute},
    KeyRow{"megatron_lm_config.megatron_lm_num_micro_batches megatron_lm_num_micro_batches", kUsed,
           take_count<&J::accumulation>},
    KeyRow{"dynamo_config.dynamo_backend dynamo_backend", kUsed, take_compile},

    KeyRow{"fsdp_config.fsdp_forward_prefetch fsdp_config.fsdp_auto_wrap_policy "
           "fsdp_config.fsdp_min_num_params fsdp_config.forward_prefetch "
           "fsdp_config.min_num_params fsdp_forward_prefetch fsdp_auto_wrap_policy",
           kMatters, nullptr, "by what weights are gathered: set parallelism.prefetch"},
    KeyRow{"fp8_config.* mixed_precision_config.*", kMatters, nullptr,
           "the recipe of 8-bit products"},
    KeyRow{"parallelism_config.parallelism_config_cp_comm_strategy "
           "parallelism_config_cp_comm_strategy",
           kUsed, take_exchange},
    KeyRow{"parallelism_config.parallelism_config_cp_backend "
           "parallelism_config.parallelism_config_sp_*",
           kMatters, nullptr,
           "how context-parallel ranks exchange: set "
           "parallelism.context_exchange"},
    KeyRow{"compute_environment debug downcast_bf16 machine_rank main_* rdzv_backend same_network "
           "tpu_* use_cpu gpu_ids enable_cpu_affinity commands command_file ipex_config.* "
           "fsdp_config.* deepspeed_config.* dynamo_config.* megatron_lm_config.* "
           "parallelism_config.* mpirun_config.* gradient_clipping deepspeed_hostfile "
           "deepspeed_config fsdp_config dynamo_config fsdp_state_dict_type "
           "fsdp_sync_module_states fsdp_use_orig_params fsdp_cpu_ram_efficient_loading "
           "megatron_lm_gradient_clipping zero3_init_flag zero3_save_16bit_model",
           kHarmless},
};

}  // namespace
}  // namespace accelerate_file

std::span<const KeyRow> accelerate_keys() { return accelerate_file::kAccelerateRows; }

}  // namespace lockstep
