// Keys of TorchTitan's TOML files, which its command line has too.
#include <array>
#include <fmt/format.h>

#include "sim/launch/key_table.hpp"

namespace lockstep {
namespace torchtitan_file {
namespace {

using J = JobSketch;
constexpr KeyFate kUsed = KeyFate::used, kHarmless = KeyFate::harmless,
                  kMatters = KeyFate::unmodelled;

void take_rest_or_count(std::optional<int>& out, const Setting& from) {
  const auto value = static_cast<int>(from.integer(-1, 100'000'000));
  if (value == 0) from.fail("a whole number from 1, or -1");
  if (value > 0) out = value;
}
void take_shard_degree(J& job, const Setting& from) {
  job.shard = -1;
  take_rest_or_count(job.shard, from);
}
void take_global_batch(J& job, const Setting& from) { take_rest_or_count(job.sequences, from); }

void take_reshard(J& job, const Setting& from) {
  const std::string text = lower(from.text());
  if (text == "always" || text == "never") {
    job.reshard = text == "always";
  } else if (text != "default" && text != "1") {
    from.fail("default, always, never");
  }
}

void take_async_tensor(J& job, const Setting& from) {
  job.tensor_overlap = from.flag() ? "pieces" : "none";
}

void take_rotate(J& job, const Setting& from) {
  const std::string text = lower(from.text());
  job.context_exchange = text == "alltoall" ? "ring" : "all_gather";
}

void take_schedule(J& job, const Setting& from) {
  const std::string text = lower(from.text());
  if (text == "1f1b") {
    job.schedule = "1f1b";
  } else if (text == "gpipe") {
    job.schedule = "gpipe";
  } else if (text == "interleaved1f1b" || text == "interleaved_1f1b") {
    job.schedule = "interleaved";
  } else if (text == "loopedbfs") {
    job.schedule = "breadth_first";
  } else if (text == "zbvzerobubble") {
    job.schedule = "zb_v";
  } else if (text == "dualpipev") {
    job.schedule = "dualpipev";
  } else {
    job.remarks.push_back(fmt::format("schedule {}: taken as Interleaved1F1B", from.text()));
    job.schedule = "interleaved";
  }
}

void take_checkpoint_mode(J& job, const Setting& from) {
  const std::string text = lower(from.text());
  if (text == "none" || text == "full" || text == "selective") {
    job.recompute = text;
  } else if (text == "memory_budget") {
    job.recompute = "selective";
    job.remarks.push_back(from.key + " memory_budget: taken as selective, by operation");
  } else {
    from.fail("none, selective, full");
  }
}

/// By operation every second product runs again; a number is every n-th layer in full.
void take_selective_option(J& job, const Setting& from) {
  std::int64_t every = 0;
  if (from.text() == "op") {
    job.recompute_products = 0.5;
  } else if (parse_whole(from.text(), every) && every >= 1) {
    job.recompute_products = 1.0 / static_cast<double>(every);
    job.remarks.push_back(
        fmt::format("{} {}: taken as that share of every layer", from.key, every));
  } else {
    from.fail("op, or a whole number from 1");
  }
}

void take_compile(J& job, const Setting& from) { job.compiled = from.flag(); }

/// Before there were converters (2024 and earlier) a switch turned products of 8 bits on.
void take_float8_switch(J& job, const Setting& from) {
  if (from.flag()) job.precision = "fp8";
}
/// The first releases had the name of a scaling instead: "dynamic"; "" is off.
void take_float8_scaling(J& job, const Setting& from) {
  if (!from.is_off()) job.precision = "fp8";
}

/// `[quantize.*]` alone does nothing; converters switch it on.
void take_converters(J& job, const Setting& from) {
  for (const std::string& value : from.values) {
    const std::string text = lower(value);
    if (text.find("mx") != std::string::npos) {
      job.precision = "mxfp8";
    } else if (text.find("float8") != std::string::npos) {
      job.precision = "fp8";
    } else if (text.find("lora") != std::string::npos) {
      job.lora = true;
    }
  }
}

void take_mixed(J& job, const Setting& from) {
  const std::string text = lower(from.text());
  if (text == "bfloat16" && job.precision.empty()) job.precision = "bf16";
  if (text == "float32") job.remarks.push_back(from.key + " float32: taken as bf16");
}

/// FSDP reduces in FP32 unless a key says otherwise, and so does its optimiser step.
void take_reduced(J& job, const Setting& from) {
  if (lower(from.text()) == "float32") return;
  job.not_modelled = "format of reduced gradients: set stack.reduced_format";
}
void take_weights(J& job, const Setting& from) {
  if (lower(from.text()) == "float32") return;
  job.not_modelled =
      "weights and optimiser states of 16 bits: set stack.master_weights and "
      "stack.optimiser_states";
}
void take_data_type(J& job, const Setting& from) {
  const std::string text = lower(from.text());
  if (text == "ddp") {
    job.sharding = "none";
  } else if (text != "fsdp") {
    from.fail("fsdp, ddp");
  }
}

void take_offload(J& job, const Setting& from) {
  if (!from.flag()) return;
  job.offload_optimizer = 1;
  job.offload_parameters = true;
}

void take_model_name(J& job, const Setting& from) { job.model.name = from.text(); }
void take_flavor(J& job, const Setting& from) { job.model.flavor = from.text(); }
void take_assets(J& job, const Setting& from) { job.model.hint = from.text(); }
void take_deepep_backend(J& job, const Setting& from) {
  const std::string text = lower(from.text());
  job.expert_dispatch = text == "deepep" || text == "hybridep" ? "two_level" : "all_to_all";
}

void take_settings_file(J& job, const Setting& from) { job.settings_file = from.text(); }
/// Releases of 2026 have a recipe in Python ("--module llama3 --config llama3_8b") and no TOML.
void take_titan_recipe(J& job, const Setting& from) { job.recipe = from.text(); }

constexpr std::array kTitanRows{
    KeyRow{"model.name", kUsed, take_model_name},
    KeyRow{"model.flavor", kUsed, take_flavor},
    KeyRow{"model.hf_assets_path model.tokenizer_path", kUsed, take_assets},
    KeyRow{"job.config_file", kUsed, take_settings_file},
    KeyRow{"config", kUsed, take_titan_recipe},
    KeyRow{"module", kHarmless},
    KeyRow{"model.converters", kUsed, take_converters},
    KeyRow{"training.local_batch_size training.batch_size", kUsed, take_count<&J::local>},
    KeyRow{"training.global_batch_size", kUsed, take_global_batch},
    KeyRow{"training.seq_len", kUsed, take_count<&J::tokens>},
    KeyRow{"training.mixed_precision_param", kUsed, take_mixed},
    KeyRow{"training.enable_cpu_offload", kUsed, take_offload},
    KeyRow{"training.compile compile.enable", kUsed, take_compile},
    KeyRow{"parallelism.data_parallel_replicate_degree training.data_parallel_replicate_degree",
           kUsed, take_count<&J::replicate>},
    KeyRow{"parallelism.data_parallel_shard_degree training.data_parallel_shard_degree "
           "training.data_parallel_degree parallelism.data_parallel_degree",
           kUsed, take_shard_degree},
    KeyRow{"training.data_parallel_type", kUsed, take_data_type},
    KeyRow{"training.enable_float8_linear float8.enable_float8_linear "
           "mx.enable_mx_linear",
           kUsed, take_float8_switch},
    KeyRow{"training.fp8_linear", kUsed, take_float8_scaling},
    KeyRow{"parallelism.fsdp_reshard_after_forward", kUsed, take_reshard},
    KeyRow{"parallelism.tensor_parallel_degree training.tensor_parallel_degree", kUsed,
           take_count<&J::tensor>},
    KeyRow{"parallelism.enable_async_tensor_parallel experimental.enable_async_tensor_parallel "
           "training.enable_async_tensor_parallel",
           kUsed, take_async_tensor},
    KeyRow{"parallelism.pipeline_parallel_degree experimental.pipeline_parallel_degree", kUsed,
           take_count<&J::pipeline>},
    KeyRow{"parallelism.pipeline_parallel_schedule experimental.pipeline_parallel_schedule", kUsed,
           take_schedule},
    KeyRow{"parallelism.pipeline_parallel_layers_per_stage", kUsed,
           take_count<&J::layers_per_virtual_stage>},
    KeyRow{"parallelism.pipeline_parallel_microbatch_size", kUsed, take_count<&J::pipeline_micro>},
    KeyRow{"experimental.pipeline_parallel_microbatches", kUsed, take_count<&J::pipeline_passes>},
    KeyRow{"parallelism.context_parallel_degree experimental.context_parallel_degree", kUsed,
           take_count<&J::context>},
    KeyRow{"parallelism.context_parallel_rotate_method experimental.context_parallel_rotate_method",
           kUsed, take_rotate},
    KeyRow{"parallelism.expert_parallel_degree", kUsed, take_count<&J::expert>},
    KeyRow{"parallelism.expert_tensor_parallel_degree", kUsed, take_count<&J::expert_tensor>},
    KeyRow{"parallelism.expert_parallel_comm_backend", kUsed, take_deepep_backend},
    KeyRow{"optimizer.name", kUsed, take_optimiser},
    KeyRow{"activation_checkpoint.mode", kUsed, take_checkpoint_mode},
    KeyRow{"activation_checkpoint.selective_ac_option", kUsed, take_selective_option},

    KeyRow{"parallelism.disable_loss_parallel parallelism.enable_loss_parallel "
           "training.enable_loss_parallel",
           KeyFate::unmodelled, nullptr, "the loss over a vocabulary that ranks share"},
    KeyRow{"parallelism.pipeline_parallel_split_points experimental.pipeline_parallel_split_points "
           "parallelism.pipeline_parallel_first_stage_less_layers "
           "parallelism.pipeline_parallel_last_stage_less_layers "
           "parallelism.module_fqns_per_model_part parallelism.pipeline_parallel_schedule_csv",
           kMatters, nullptr, "where stages are cut: write parallelism.layers_per_stage"},
    KeyRow{"parallelism.enable_compiled_autograd experimental.enable_compiled_autograd "
           "parallelism.pipeline_parallel_expert_parallel_overlap "
           "parallelism.fsdp_disable_prefetch parallelism.full_dtensor "
           "parallelism.spmd_backend parallelism.context_parallel_load_balancer",
           kMatters, nullptr, "how PyTorch runs the layout"},
    KeyRow{"quantize.*enable_fsdp_float8_all_gather quantize.*precompute_float8_* "
           "float8.enable_fsdp_float8_all_gather float8.precompute_*",
           kMatters, nullptr, "weights are gathered in 8 bits: set stack.parameter_bytes"},
    KeyRow{"optimizer.early_step_in_backward", kMatters, nullptr,
           "the optimiser steps within the backward pass, and gradients go as they are used"},
    KeyRow{"optimizer.state_dtype", kMatters, nullptr,
           "format of the optimiser's states: set stack.optimiser_states"},
    KeyRow{"training.mixed_precision_reduce", kUsed, take_reduced},
    KeyRow{"training.dtype", kUsed, take_weights},
    KeyRow{"activation_checkpoint.per_op_sac_force_recompute_mm_shapes_by_fqns "
           "activation_checkpoint.memory_budget",
           kMatters, nullptr, "which products run again: set recompute.products"},
    KeyRow{"memory_estimation.* training.deterministic training.seed debug.*", kHarmless},
    // Of these sections others matter: one that no row has is told. Names are those of
    // torchtitan/config/job_config.py and, before it, torchtitan/config_manager.py.
    KeyRow{"training.dataset training.dataset_path training.dataset_* training.max_norm "
           "training.steps training.warmup_steps training.gc_freq training.gc_debug "
           "training.classifier_free_guidance_prob training.img_size training.dataloader.* "
           "experimental.custom_import experimental.custom_args_module "
           "model.print_after_conversion model.norm_type "
           "activation_checkpoint.early_stop activation_checkpoint.preserve_rng_state "
           "activation_checkpoint.determinism_check activation_checkpoint.debug "
           "activation_checkpoint.visualize_memory_budget_pareto",
           kHarmless},
    KeyRow{"activation_checkpoint.per_op_*", kMatters, nullptr,
           "which products run again: set recompute.products"},
    KeyRow{"job.* profiling.* metrics.* optimizer.* lr_scheduler.* checkpoint.* "
           "compile.* quantize.* float8.* mx.* validation.* comm.* "
           "fault_tolerance.* flux.* encoder.* inference.*",
           kHarmless},
};

}  // namespace
}  // namespace torchtitan_file

std::span<const KeyRow> torchtitan_keys() { return torchtitan_file::kTitanRows; }

}  // namespace lockstep
