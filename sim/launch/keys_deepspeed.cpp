// Keys of DeepSpeed's JSON. "auto" is what the Trainer's arguments say.
#include <array>

#include "sim/launch/key_table.hpp"

namespace lockstep {
namespace deepspeed_file {
namespace {

using J = JobSketch;
constexpr KeyFate kUsed = KeyFate::used, kHarmless = KeyFate::harmless,
                  kMatters = KeyFate::unmodelled;

bool is_auto(const Setting& from) { return lower(from.text()) == "auto"; }

template <auto Member>
void take_unless_auto(J& job, const Setting& from) {
  if (!is_auto(from)) job.*Member = from.count();
}

void take_stage(J& job, const Setting& from) {
  if (!is_auto(from)) job.zero_stage = static_cast<int>(from.integer(0, 3));
}
void take_ds_bf16(J& job, const Setting& from) {
  if (!is_auto(from) && from.flag()) job.precision = "bf16";
}
void take_ds_fp16(J& job, const Setting& from) {
  if (!is_auto(from) && from.flag()) job.precision = "fp16";
}
void take_optimizer_device(J& job, const Setting& from) {
  if (from.is_off()) return;
  job.offload_optimizer = 1;
  if (lower(from.text()) == "nvme") job.remarks.push_back(from.key + " nvme: taken as cpu");
}
void take_param_device(J& job, const Setting& from) {
  if (from.is_off()) return;
  job.offload_parameters = true;
  job.offload_optimizer = 1;
}
void take_old_offload(J& job, const Setting& from) {
  if (from.flag()) job.offload_optimizer = 1;
}
void take_offload_ratio(J& job, const Setting& from) {
  const double share = from.number();
  if (share < 0 || share > 1) from.fail("a share from 0 to 1");
  if (job.offload_optimizer) job.offload_optimizer = share;
}
void take_overlap(J& job, const Setting& from) {
  if (!is_auto(from)) job.communication["overlap_gradients"] = from.flag();
}
void take_checkpoint_count(J& job, const Setting& from) {
  if (!from.is_off()) job.recompute = "full";
}
void take_mics(J& job, const Setting& from) { job.shard_group = from.count(); }

constexpr std::array kDeepSpeedRows{
    KeyRow{"train_batch_size", kUsed, take_unless_auto<&J::sequences>},
    KeyRow{"train_micro_batch_size_per_gpu", kUsed, take_unless_auto<&J::micro>},
    KeyRow{"gradient_accumulation_steps", kUsed, take_unless_auto<&J::accumulation>},
    KeyRow{"zero_optimization.stage zero_stage", kUsed, take_stage},
    KeyRow{"zero_optimization.offload_optimizer.device offload_optimizer_device", kUsed,
           take_optimizer_device},
    KeyRow{"zero_optimization.offload_optimizer.ratio", kUsed, take_offload_ratio},
    KeyRow{"zero_optimization.offload_param.device offload_param_device", kUsed, take_param_device},
    KeyRow{"zero_optimization.cpu_offload", kUsed, take_old_offload},
    KeyRow{"zero_optimization.overlap_comm", kUsed, take_overlap},
    KeyRow{"zero_optimization.mics_shard_size", kUsed, take_mics},
    KeyRow{"bf16.enabled bfloat16.enabled", kUsed, take_ds_bf16},
    KeyRow{"fp16.enabled", kUsed, take_ds_fp16},
    KeyRow{"tensor_parallel.autotp_size tensor_parallel.tp.tp_size", kUsed,
           take_unless_auto<&J::tensor>},
    KeyRow{"sequence_parallel_size", kUsed, take_unless_auto<&J::context>},
    KeyRow{"activation_checkpointing.partition_activations "
           "activation_checkpointing.number_checkpoints",
           kUsed, take_checkpoint_count},
    KeyRow{"optimizer.type", kUsed, take_optimiser},
    KeyRow{"pipeline.stages pipeline_parallel_size", kUsed, take_unless_auto<&J::pipeline>},

    KeyRow{"zero_optimization.reduce_bucket_size zero_optimization.allgather_bucket_size "
           "zero_optimization.stage3_prefetch_bucket_size zero_optimization.sub_group_size "
           "zero_optimization.stage3_param_persist* zero_optimization.stage3_param_persitence_* "
           "zero_optimization.stage3_max_live_parameters "
           "zero_optimization.stage3_max_reuse_distance zero_optimization.reduce_scatter "
           "zero_optimization.use_multi_rank_bucket_allreduce",
           kMatters, nullptr,
           "sizes of pieces: set parallelism.prefetch and stack.communication.bucket_parameters"},
    KeyRow{"zero_optimization.zero_hpz_partition_size zero_optimization.zero_quantized_* "
           "zero_optimization.mics_hierarchical_*",
           kMatters, nullptr, "ZeRO++: a second copy in the node, and exchanges of few bits"},
    KeyRow{"zero_optimization.offload_optimizer.* zero_optimization.offload_param.* "
           "activation_checkpointing.cpu_checkpointing aio.* offload_optimizer_nvme_path "
           "offload_param_nvme_path",
           kMatters, nullptr, "how what lives on the host moves"},
    KeyRow{"communication_data_type fp32_allreduce prescale_gradients gradient_predivide_factor "
           "sparse_gradients data_types.* amp.* torch_autocast.*",
           kMatters, nullptr, "format of reduced gradients: set stack.reduced_format"},
    KeyRow{"compression_training.* sparse_attention.* data_efficiency.* curriculum_learning.* "
           "progressive_layer_drop.* eigenvalue.* quantize_training.* hybrid_engine.* "
           "compile.* nebula.* pipeline.*",
           kMatters, nullptr, "a feature of DeepSpeed that changes what a step does"},
    KeyRow{
        "zero_optimization.contiguous_gradients zero_optimization.round_robin_gradients "
        "zero_optimization.stage3_gather_16bit_weights_on_model_save "
        "zero_optimization.stage3_gather_fp16_weights_on_model_save "
        "zero_optimization.allgather_partitions zero_optimization.load_from_fp32_weights "
        "zero_optimization.elastic_checkpoint zero_optimization.ignore_unused_parameters "
        "zero_optimization.legacy_stage1 zero_optimization.memory_efficient_linear "
        "zero_optimization.stage3_module_granularity_threshold zero_optimization.leaf_module "
        "zero_optimization.cpu_offload_use_pin_memory zero_optimization.log_trace_cache_warnings "
        "zero_optimization.cpu_offload_params zero_optimization.enable_sanity_checks",
        kHarmless},
    KeyRow{"steps_per_print gradient_clipping wall_clock_breakdown memory_breakdown "
           "zero_allow_untested_optimizer zero_force_ds_cpu_optimizer optimizer.* scheduler.* "
           "fp16.* bf16.* bfloat16.* dump_state flops_profiler.* tensorboard.* wandb.* "
           "csv_monitor.* comet.* monitor_config.* comms_logger.* autotuning.* elasticity.* "
           "checkpoint.* data_sampling.* disable_allgather timers.* "
           "use_data_before_expert_parallelism "
           "activation_checkpointing.contiguous_memory_optimization "
           "activation_checkpointing.synchronize_checkpoint_boundary "
           "activation_checkpointing.profile tensor_parallel.* dataloader_drop_last "
           "graph_harvesting seed train_iters",
           kHarmless},
};

}  // namespace
}  // namespace deepspeed_file

std::span<const KeyRow> deepspeed_keys() { return deepspeed_file::kDeepSpeedRows; }

}  // namespace lockstep
