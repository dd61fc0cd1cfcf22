// Options of Colossal-AI's training scripts (hpcaitech/ColossalAI, examples/language and
// applications/Colossal-LLaMA), which `colossalai run` starts.
#include <array>

#include "sim/launch/key_table.hpp"

namespace lockstep {
namespace colossal_file {
namespace {

using J = JobSketch;
constexpr KeyFate kUsed = KeyFate::used, kHarmless = KeyFate::harmless,
                  kMatters = KeyFate::unmodelled;

/// What shards: "gemini" as ZeRO-3, "zero2" as its stage, "3d" by its own widths.
void take_plugin(J& job, const Setting& from) {
  const std::string text = lower(from.text());
  if (text.starts_with("gemini")) {
    job.zero_stage = 3;
  } else if (text.starts_with("zero2") || text == "low_level_zero") {
    job.zero_stage = 2;
  } else if (text.starts_with("fsdp")) {
    job.sharding = "zero3";
  } else if (text == "3d" || text == "3d_cpu" || text.starts_with("hybrid")) {
    return;
  } else if (text.find("ddp") != std::string::npos) {
    job.zero_stage = 0;
  } else {
    job.not_modelled = "a plugin that is not known: set parallelism";
    return;
  }
  if (text.ends_with("cpu")) job.offload_optimizer = 1;
}
void take_zero(J& job, const Setting& from) {
  job.zero_stage = static_cast<int>(from.integer(0, 2));
}
void take_colossal_checkpointing(J& job, const Setting& from) {
  if (from.flag()) job.recompute = "full";
}
void take_colossal_precision(J& job, const Setting& from) {
  const std::string text = lower(from.text());
  job.precision = text.starts_with("fp16") ? "fp16" : "bf16";
  if (text == "fp32") job.not_modelled = "trains in fp32; bf16 is simulated";
}
void take_colossal_flash(J& job, const Setting& from) {
  if (from.flag()) job.attention = "fused";
}
void take_size(J& job, const Setting& from) {
  job.model.hint = from.text();
  job.model.name = from.text();
}
void take_ring_mode(J& job, const Setting& from) {
  const std::string text = lower(from.text());
  if (text == "all_to_all") {
    job.context_exchange = "all_to_all";
  } else if (text == "ring_attn") {
    job.context_exchange = "ring";
  } else {
    job.not_modelled = "how sequence-parallel ranks exchange: set parallelism.context_exchange";
  }
}

constexpr std::array kColossalRows{
    KeyRow{"plugin p", kUsed, take_plugin},
    KeyRow{"zero zero_stage", kUsed, take_zero},
    KeyRow{"tp tensor_parallel", kUsed, take_count<&J::tensor>},
    KeyRow{"pp", kUsed, take_count<&J::pipeline>},
    KeyRow{"sp", kUsed, take_count<&J::context>},
    KeyRow{"sp_mode sequence_parallelism_mode", kUsed, take_ring_mode},
    KeyRow{"ep", kUsed, take_count<&J::expert>},
    KeyRow{"batch_size b", kUsed, take_count<&J::local>},
    KeyRow{"mbs microbatch_size micro_batch_size", kUsed, take_count<&J::micro>},
    KeyRow{"accumulation_steps", kUsed, take_count<&J::accumulation>},
    KeyRow{"max_length l", kUsed, take_count<&J::tokens>},
    KeyRow{"mixed_precision", kUsed, take_colossal_precision},
    KeyRow{"grad_checkpoint use_grad_checkpoint g", kUsed, take_colossal_checkpointing},
    KeyRow{"flash_attention use_flash_attn x", kUsed, take_colossal_flash},
    KeyRow{"pretrained config c model_path", kUsed, take_size},
    KeyRow{"n_chunks pp_style num_model_chunks", kMatters, nullptr,
           "chunks of a stage: set parallelism.virtual_stages"},
    KeyRow{"custom_ckpt enable_async_reduce overlap overlap_allgather use_fp8 use_fp8_comm "
           "enable_sequence_parallelism",
           kMatters, nullptr, "a switch of Colossal-AI that changes what a step does"},
    KeyRow{"dataset* lr learning_rate weight_decay w warmup_* grad_clip grad_clipping save_* "
           "num_epochs num_steps s tensorboard_dir log_* config_file load* checkpoint_path "
           "ignore_steps profile* skip_save_* padding_mode tokenizer_dir include exclude "
           "ssh_port initial_scale seed mode",
           kHarmless},
};

}  // namespace
}  // namespace colossal_file

std::span<const KeyRow> colossal_keys() { return colossal_file::kColossalRows; }

}  // namespace lockstep
