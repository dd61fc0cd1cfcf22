// Options of OpenRLHF's scripts (OpenRLHF/OpenRLHF, openrlhf/cli/train_*.py) and of verl's
// fine-tuning (volcengine/verl, verl/trainer/config/sft_trainer.yaml), which the Trainer's lack.
#include <array>

#include "sim/launch/key_table.hpp"

namespace lockstep {
namespace post_training_file {
namespace {

using J = JobSketch;
constexpr KeyFate kUsed = KeyFate::used, kHarmless = KeyFate::harmless,
                  kMatters = KeyFate::unmodelled;

void take_pretrain(J& job, const Setting& from) { job.model.name = from.text(); }
/// verl's fine-tuning runs under FSDP with products of bf16 whatever else is said.
void take_verl_model(J& job, const Setting& from) {
  job.model.name = from.text();
  if (job.sharding.empty()) job.sharding = "zero3";
  if (job.loaded_precision.empty()) job.loaded_precision = "bf16";
}
void take_verl_recompute(J& job, const Setting& from) {
  job.recompute = from.flag() ? "full" : "none";
}
void take_adam_offload(J& job, const Setting& from) {
  if (from.flag()) job.offload_optimizer = 1;
}
void take_verl_offload(J& job, const Setting& from) {
  if (!from.flag()) return;
  job.offload_optimizer = 1;
  job.offload_parameters = true;
}
void take_verl_strategy(J& job, const Setting& from) {
  job.sharding = "zero3";
  job.fsdp_version = lower(from.text()) == "fsdp2" ? 2 : 1;
}
void take_verl_rank(J& job, const Setting& from) {
  if (from.is_off()) return;
  job.lora = true;
  job.lora_rank = from.count();
}
void take_ring_size(J& job, const Setting& from) {
  if (from.count(0) < 2) return;
  job.context = from.count();
  job.context_exchange = "ring";
}
constexpr std::array kPostTrainingRows{
    KeyRow{"pretrain model.path", kUsed, take_pretrain},
    KeyRow{"model.partial_pretrain", kUsed, take_verl_model},
    KeyRow{"train_batch_size data.train_batch_size", kUsed, take_count<&J::sequences>},
    KeyRow{"micro_train_batch_size data.micro_batch_size_per_gpu", kUsed, take_count<&J::micro>},
    KeyRow{"max_len data.max_length", kUsed, take_count<&J::tokens>},
    KeyRow{"model.enable_gradient_checkpointing", kUsed, take_verl_recompute},
    KeyRow{"model.fsdp_config.cpu_offload model.fsdp_config.offload_params", kUsed,
           take_verl_offload},
    KeyRow{"model.strategy", kUsed, take_verl_strategy},
    KeyRow{"model.lora_rank", kUsed, take_verl_rank},
    KeyRow{"adam_offload", kUsed, take_adam_offload},
    KeyRow{"ring_attn_size", kUsed, take_ring_size},
    KeyRow{"ds_tensor_parallel_size", kUsed, take_count<&J::tensor>},
    KeyRow{"trainer.nnodes", kUsed, take_count<&J::nodes>},
    KeyRow{"trainer.n_gpus_per_node", kUsed, take_count<&J::node_gpus>},
    KeyRow{"use_remove_padding ring_head_stride save_path ckpt_path max_epochs disable_ds_ckpt "
           "input_key output_key input_template apply_chat_template aux_loss_coef zpg "
           "pretrain_mode multiturn grad_accum_dtype disable_trace_cache overlap_comm "
           "data.* optim.* trainer.* model.* l2 use_tensorboard use_wandb max_norm adam_betas",
           kHarmless},
    KeyRow{"actor_rollout_ref.* algorithm.* critic.* reward_model.* custom_reward_function.* "
           "actor_num_* vllm_num_engines rollout_batch_size micro_rollout_batch_size "
           "n_samples_per_prompt ref_pretrain critic_pretrain reward_pretrain remote_rm_url "
           "colocate_* advantage_estimator init_kl_coef generate_max_len prompt_max_len",
           kMatters, nullptr, "a step of preference optimisation or of RL: write it under rl"},
};

}  // namespace
}  // namespace post_training_file

std::span<const KeyRow> post_training_keys() { return post_training_file::kPostTrainingRows; }

}  // namespace lockstep
