// Keys that NeMo's and Megatron-Bridge's files have beside Megatron-LM's.
#include <array>
#include <fmt/format.h>

#include "sim/launch/key_table.hpp"

namespace lockstep {
namespace nemo_file {
namespace {

using J = JobSketch;
constexpr KeyFate kUsed = KeyFate::used, kHarmless = KeyFate::harmless,
                  kMatters = KeyFate::unmodelled;

void take_devices(J& job, const Setting& from) {
  std::int64_t whole = 0;
  if (from.values.size() == 1 && !parse_whole(from.values[0], whole)) return;  // "auto"
  job.node_gpus = from.values.size() > 1 ? static_cast<int>(from.values.size()) : from.count();
}

void take_optimizer_name(J& job, const Setting& from) {
  const std::string text = lower(from.text());
  if (text == "distributed_fused_adam" || text == "mcore_distributed_optim") {
    job.distributed_optimizer = true;
  } else {
    take_optimiser(job, from);
  }
}

/// A fused operator that the stack has a switch for; Megatron-LM's options only turn them off.
template <const char* const& Switch>
void take_operator(J& job, const Setting& from) {
  job.stack_switches[Switch] = from.flag();
}
constexpr const char* kFusedAccumulation = "gradient_accumulation_fusion";
constexpr const char* kFusedRotation = "fused_rope";

void take_fsdp(J& job, const Setting& from) {
  if (from.flag()) job.sharding = "zero3";
}

/// NeMo's names of PyTorch's strategies (nemo/collections/nlp/parts/nlp_overrides.py,
/// NLPFSDPStrategy).
void take_fsdp_strategy(J& job, const Setting& from) {
  const std::string text = lower(from.text());
  if (text == "full") {
    job.nemo_fsdp_strategy = "full_shard";
  } else if (text == "grad") {
    job.nemo_fsdp_strategy = "shard_grad_op";
  } else if (text == "hybrid") {
    job.nemo_fsdp_strategy = "hybrid_shard";
  } else {
    from.fail("full, grad, hybrid");
  }
}

void take_accumulation(J& job, const Setting& from) {
  // Megatron's batches say the number of micro batches themselves.
  if (from.count() > 1) {
    job.remarks.push_back(fmt::format("{} {}: global_batch_size says it", from.key, from.text()));
  }
}

/// "megatron.bridge.models.llama.Llama3ModelProvider8B" is Llama 3 8B, and so is NeMo's
/// "nemo.collections.llm.gpt.model.llama.Llama3Config8B".
void take_provider(J& job, const Setting& from) {
  const std::string text = from.text();
  std::string name(last_part(text));
  for (const std::string_view word : {"ModelProvider", "Provider", "Config"}) {
    const std::size_t at = name.find(word);
    if (at == std::string::npos) continue;
    job.model.name = name.replace(at, word.size(), "_");
    return;
  }
  // NeMo 2 says the sizes under model.config.
  if (text.find("nemo.collections.llm") != std::string::npos) return;
  job.not_modelled = "a class whose sizes are not known: name the model (--model)";
}
void take_peft(J& job, const Setting& from) {
  job.lora = lower(from.text()).find("lora") != std::string::npos;
  job.lora_nf4 = lower(from.text()).find("qlora") != std::string::npos;
}

void take_hint(J& job, const Setting& from) { job.model.hint = from.text(); }
/// "llama3_70b", "llama3_8b_pretrain_config", and with arguments: "llama3_8b(num_nodes=2)".
void take_recipe(J& job, const Setting& from) {
  std::string name = from.text();
  if (const std::size_t bracket = name.find('('); bracket != std::string::npos) {
    const std::size_t nodes = name.find("num_nodes=", bracket);
    std::int64_t whole = 0;
    if (nodes != std::string::npos) {
      const std::size_t begin = nodes + std::string_view("num_nodes=").size();
      const std::size_t end = name.find_first_of(",) ", begin);
      if (parse_whole(name.substr(begin, end - begin), whole) && whole >= 1 && whole <= 1'000'000) {
        job.nodes = static_cast<int>(whole);
      }
    }
    name.resize(bracket);
  }
  job.recipe = name;
}

void take_tokenizer_library(J& job, const Setting& from) {
  if (from.text().find('/') != std::string::npos) {
    job.model.hint = from.text();
  } else {
    job.model.tokenizer = from.text();
  }
}

constexpr std::array kNemoRows{
    KeyRow{"trainer.num_nodes num_nodes", kUsed, take_count<&J::nodes>},
    KeyRow{"trainer.devices trainer.num_gpus_per_node gpus_per_node", kUsed, take_devices},
    KeyRow{"optim.name", kUsed, take_optimizer_name},
    KeyRow{"model._target_ model.config._target_", kUsed, take_provider},
    KeyRow{"peft.peft_scheme", kUsed, take_peft},
    KeyRow{"peft.lora_tuning.adapter_dim peft.dim", kUsed, take_count<&J::lora_rank>},
    KeyRow{"peft.* *_target_", kHarmless},
    KeyRow{"fsdp", kUsed, take_fsdp},
    KeyRow{"fsdp_sharding_strategy", kUsed, take_fsdp_strategy},
    KeyRow{"trainer.accumulate_grad_batches accumulate_grad_batches", kUsed, take_accumulation},
    KeyRow{"gradient_accumulation_fusion", kUsed, take_operator<kFusedAccumulation>},
    KeyRow{"apply_rope_fusion", kUsed, take_operator<kFusedRotation>},
    KeyRow{"tokenizer.type tokenizer.model tokenizer.tokenizer_model", kUsed,
           take_tokenizer_library},
    KeyRow{"recipe recipe_name factory", kUsed, take_recipe},
    KeyRow{"run.name name hf_model_path hf_path pretrained_model_name_or_path "
           "hf_model_id model_id",
           kUsed, take_hint},
    KeyRow{"data.seq_length dataset.seq_length dataset.sequence_length data.sequence_length", kUsed,
           take_count<&J::tokens>},
    KeyRow{"train.micro_batch_size data.micro_batch_size", kUsed, take_count<&J::micro>},
    KeyRow{"train.global_batch_size data.global_batch_size", kUsed, take_count<&J::sequences>},

    KeyRow{"defaults* hydra.* run.* exp_manager.* nsys_profile.* model.data.* data.* dataset.* "
           "logger.* checkpoint.* scheduler.* optim.* optimizer.* rng.* profiling.* train.* "
           "trainer.* tokenizer.* model.tokenizer.* validation.* logging.* rerun_state_machine.* "
           "straggler.* nvrx_straggler.* ft.* env_vars.* metrics test_type launcher launcher.* "
           "inprocess_restart.* mcore_customization_config.* model.optim.* model.nsys_profile.* "
           "model.mcore_customization_config.* dist.distributed_* dist.* ddp.check_* ddp.* "
           "stages cluster cluster.* env.* training auto_* base_results_dir data_dir",
           kHarmless},
    KeyRow{"mcore_gpt resume_from_checkpoint pre_process post_process "
           "grad_div_ar_fusion gradient_as_bucket_view sync_batch_comm apex_transformer_log_level "
           "use_scaled_init_method do_layer_norm_weight_decay headscale transformer_block_type "
           "normalize_attention_scores rotary_percentage attention_type scale_positional_embedding "
           "seq_len_interpolation_factor get_attention_mask_from_fusion use_emha "
           "fsdp_sharded_checkpoint contiguous_grad_buffer contiguous_param_buffer "
           "overlap_param_gather_with_optimizer_step gc_interval "
           "use_hf_vision_model restore_from_path prompt_* wandb* y yes dryrun step_func executor",
           kHarmless},
    KeyRow{"hysteresis* openai_gelu hidden_act normalization gradient_clip_val", kHarmless},
    KeyRow{"freeze_language_model freeze_vision_model freeze_vision_projection", kMatters, nullptr,
           "a part is not trained: say so under frozen"},
    KeyRow{"vision_config.* vision_*", kMatters, nullptr, "a vision tower: name the model"},
};

}  // namespace
}  // namespace nemo_file

std::span<const KeyRow> nemo_keys() { return nemo_file::kNemoRows; }

}  // namespace lockstep
