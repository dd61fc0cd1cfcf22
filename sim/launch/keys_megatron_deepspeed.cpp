// Keys that Megatron-DeepSpeed adds to Megatron-LM's arguments. Experts there stand in every second
// layer, and a token goes to one of them, unless its arguments say otherwise (megatron/arguments.py
// of that fork).
#include <array>

#include "sim/launch/key_table.hpp"

namespace lockstep {
namespace megatron_deepspeed_file {
namespace {

constexpr KeyFate kUsed = KeyFate::used;
constexpr KeyFate kMatters = KeyFate::unmodelled;

void take_expert_width(JobSketch& job, const Setting& from) {
  job.expert = from.count();
  if (!job.model.expert_interval) job.model.expert_interval = 2;
  if (!job.model.expert_top) job.model.expert_top = 1;
}
void take_interval(JobSketch& job, const Setting& from) {
  job.model.expert_interval = from.count();
}
void take_top_experts(JobSketch& job, const Setting& from) { job.model.expert_top = from.count(); }

/// 0, of tokens that are never dropped, stands whichever key comes first.
void take_train_capacity(JobSketch& job, const Setting& from) {
  if (!job.capacity_factor) job.capacity_factor = from.number();
}
void take_no_dropping(JobSketch& job, const Setting& from) {
  if (from.flag()) job.capacity_factor = 0;
}

void take_settings_file(JobSketch& job, const Setting& from) { job.deepspeed_file = from.text(); }

constexpr std::array kRows{
    KeyRow{"deepspeed_config", kUsed, take_settings_file},
    KeyRow{"no_pipeline_parallel", kUsed, take_flag<&JobSketch::no_pipeline_module>},
    KeyRow{"moe_expert_parallel_size", kUsed, take_expert_width},
    KeyRow{"expert_interval", kUsed, take_interval},
    KeyRow{"topk", kUsed, take_top_experts},
    KeyRow{"moe_train_capacity_factor", kUsed, take_train_capacity},
    KeyRow{"disable_moe_token_dropping", kUsed, take_no_dropping},
    KeyRow{"moe_loss_coeff moe_eval_capacity_factor moe_min_capacity create_moe_param_group "
           "override_lr_scheduler use_tutel deepspeed_mpi deepscale deepscale_config "
           "zero_contigious_gradients zero_reduce_* use_pin_memory"},
    KeyRow{"mlp_type", kMatters, nullptr,
           "residual: a dense MLP beside the experts; say so as a shared expert"},
    KeyRow{"mos kd random_ltd data_efficiency_* train_data_exact_num_epochs", kMatters, nullptr,
           "a teacher or dropped tokens change what a step does"},
    KeyRow{"enable_expert_tensor_parallelism", kMatters, nullptr,
           "experts are cut by the tensor width: set parallelism.expert_tensor"},
    KeyRow{"checkpoint_num_layers checkpoint_in_cpu synchronize_each_layer "
           "contiguous_checkpointing partition_activations profile_backward",
           kMatters, nullptr, "how activations are checkpointed: set recompute or offload"},
};

}  // namespace
}  // namespace megatron_deepspeed_file

std::span<const KeyRow> megatron_deepspeed_keys() { return megatron_deepspeed_file::kRows; }

}  // namespace lockstep
