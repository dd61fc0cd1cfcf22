#include "sim/launch/settle_job.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fmt/format.h>
#include <string>
#include <string_view>

namespace lockstep {
namespace {

/// Makes of single keys what they come to together.
class Settling {
 public:
  Settling(const LaunchFiles& files, SketchedJob& sketched) : files_(files), out_(sketched) {}

  void run() {
    settle_checkpointing();
    guess_settings();
    guess_stage();
    settle_fsdp();
    settle_precision();
    settle_few_bits();
    settle_stage_zero();
  }

 private:
  /// LLaMA-Factory checkpoints every layer whatever the Trainer's switch says, unless its own one
  /// is set (hiyouga/LLaMA-Factory, src/llamafactory/model/model_utils/checkpointing.py,
  /// prepare_model_for_training; hparams/model_args.py). A key of its own says that it is it, or
  /// two of those that other scripts have too.
  void settle_checkpointing() {
    JobSketch& job = out_.job;
    const bool is_it = job.llama_factory || job.llama_factory_words.size() > 1;
    if (!is_it || job.no_default_checkpointing.value_or(false)) return;
    if (job.recompute == "full") return;
    job.recompute = "full";
    job.remarks.emplace_back(
        "LLaMA-Factory checkpoints all layers unless disable_gradient_checkpointing is set");
  }

  /// Of a file of Accelerate's settings that a command names and that is not here: what its name
  /// has ("deepspeed_zero3.yaml", "fsdp2.yaml"). Of another one, and of TorchTitan's: a remark.
  void guess_settings() {
    JobSketch& job = out_.job;
    const bool titan = has_part(files_, LaunchKind::torchtitan);
    if (job.settings_file.empty() || has_part(files_, LaunchKind::accelerate)) return;
    const bool given = std::ranges::any_of(files_.parts, [](const LaunchPart& part) {
      return part.kind == LaunchKind::torchtitan && part.file.ends_with(".toml");
    });
    if (titan && given) return;
    const std::string name = std::filesystem::path(job.settings_file).stem().string();
    const std::string small = lower(name);
    for (KeyFinding& key : out_.keys) {
      if (key.setting.text() != job.settings_file) continue;
      key.fate = KeyFate::unmodelled;
      key.note = "what it says is not read: give that file too";
    }
    if (titan) {
      if (job.model.hint.empty()) job.model.hint = name;
    } else if (small.find("zero") != std::string::npos && !job.zero_stage) {
      job.deepspeed_file = job.settings_file;
    } else if (small.find("fsdp") != std::string::npos && job.sharding.empty()) {
      job.sharding = "zero3";
      if (!job.fsdp_version) job.fsdp_version = small.find("fsdp2") != std::string::npos ? 2 : 1;
      job.remarks.push_back(fmt::format("{}: not given; FSDP by its name", job.settings_file));
    }
  }

  /// Of a file of DeepSpeed's settings that another one names and that is not here: its stage, if
  /// its name has it ("ds_z3_config.json", "zero_stage2.json").
  void guess_stage() {
    JobSketch& job = out_.job;
    if (job.deepspeed_file.empty() || job.zero_stage) return;
    const std::string name = lower(std::filesystem::path(job.deepspeed_file).stem().string());
    for (const char* const word : {"zero_stage", "zero-stage", "stage", "zero", "z"}) {
      const std::size_t at = name.find(word);
      if (at == std::string::npos) continue;
      const std::size_t digit = name.find_first_not_of("_-", at + std::string_view(word).size());
      if (digit == std::string::npos || name[digit] < '0' || name[digit] > '3') continue;
      job.zero_stage = name[digit] - '0';
      job.remarks.push_back(fmt::format("{}: not given; ZeRO stage {} by its name",
                                        job.deepspeed_file, *job.zero_stage));
      return;
    }
    for (KeyFinding& key : out_.keys) {
      if (key.setting.text() != job.deepspeed_file) continue;
      key.fate = KeyFate::unmodelled;
      key.note = "what is sharded stands in that file: give it too";
    }
  }

  /// Megatron takes a wrapper by its switches alone (megatron/training/training.py, get_model;
  /// use_torch_fsdp2 has no strategies), NeMo's PyTorch FSDP likewise.
  void settle_fsdp() {
    JobSketch& job = out_.job;
    if (job.fsdp_checkpointing) job.recompute = "full";
    const bool nemo_fsdp = job.sharding == "zero3" && !job.megatron_fsdp;
    if (job.megatron_fsdp) {
      const std::string& strategy = job.megatron_fsdp_strategy;
      if (!strategy.empty()) job.sharding = strategy;
      if (job.sharding.empty()) job.sharding = "zero3";
    } else if (!job.megatron_fsdp_strategy.empty()) {
      call_harmless("data_parallel_sharding_strategy", kNoFsdp);
    }
    if (!job.torch_fsdp2) {
      call_harmless("torch_fsdp2_no_reshard_after_forward", kNoFsdp);
    } else if (job.torch_fsdp2_keeps_weights) {
      job.reshard = false;
    }
    if (job.nemo_fsdp_strategy.empty()) return;
    if (nemo_fsdp) {
      take_fsdp_name(job, job.nemo_fsdp_strategy);
    } else {
      call_harmless("fsdp_sharding_strategy", kNoFsdp);
    }
  }

  static constexpr const char* kNoFsdp = "FSDP is off";

  void call_harmless(std::string_view name, const char* why) {
    for (KeyFinding& key : out_.keys) {
      const bool counts = key.fate == KeyFate::used || key.fate == KeyFate::unmodelled;
      if (!counts || last_part(plain_key(key.setting.key)) != name) continue;
      key.fate = KeyFate::harmless;
      key.note = why;
    }
  }

  void settle_precision() {
    JobSketch& job = out_.job;
    const bool in_less = !job.accelerate_precision.empty() && job.accelerate_precision != "no";
    if (job.precision.empty() && in_less) job.precision = job.accelerate_precision;
    if (job.precision.empty() && job.loaded_precision == "auto") {
      job.loaded_precision = "bf16";
      job.remarks.emplace_back("weights have the checkpoint's format: taken as bf16");
    }
    if (job.precision.empty()) job.precision = job.loaded_precision;
  }

  /// Exceptions from products of few bits are none where products have 16, and those by layer
  /// where no flag asks for them (megatron/core/fp8_utils.py, is_first_last_bf16_layer).
  void settle_few_bits() {
    constexpr std::array<std::string_view, 3> kFew{"fp8", "mxfp8", "nvfp4"};
    constexpr std::string_view kByLayer = "first_last_layers_bf16";
    const bool few = std::ranges::find(kFew, out_.job.precision) != kFew.end();
    const bool by_layer = few && std::ranges::any_of(out_.keys, [&](const KeyFinding& key) {
                            return key.fate == KeyFate::unmodelled &&
                                   last_part(plain_key(key.setting.key)) == kByLayer;
                          });
    if (!by_layer) {
      call_harmless("num_layers_at_start_in_bf16", "first_last_layers_bf16 is off");
      call_harmless("num_layers_at_end_in_bf16", "first_last_layers_bf16 is off");
    }
    if (few) return;
    for (const std::string_view name : {kByLayer, std::string_view("fp8_dot_product_attention"),
                                        std::string_view("fp8_multi_head_attention")}) {
      call_harmless(name, "products have 16 bits");
    }
  }

  /// In bf16 DeepSpeed's pipeline engine has BF16_Optimizer at stage 0
  /// (deepspeed/runtime/engine.py, _do_optimizer_sanity_check): FP32 gradients are all-reduced,
  /// each replica steps its share of FP32 weights and states, and bf16 weights are gathered
  /// (deepspeed/runtime/bf16_optimizer.py). Without a pipeline it had so until pull request 7515
  /// (August 2025), and is plain DDP since.
  void settle_stage_zero() {
    JobSketch& job = out_.job;
    if (job.zero_stage != 0 || job.precision != "bf16") return;
    const bool engine = std::ranges::any_of(files_.parts,
                                            [](const LaunchPart& part) {
                                              return part.kind == LaunchKind::megatron ||
                                                     part.kind == LaunchKind::neox;
                                            }) &&
                        !job.no_pipeline_module;
    if (!engine && job.pipeline.value_or(1) == 1) {
      job.remarks.emplace_back(
          "ZeRO stage 0 in bf16 without a pipeline: nothing is split, as in DeepSpeed since August "
          "2025; before, replicas shared the optimiser's states (--set "
          "parallelism.sharding=zero1)");
      return;
    }
    job.distributed_optimizer = true;
    if (!job.bf16_gradients) job.bf16_gradients = false;
    job.remarks.emplace_back(
        "ZeRO stage 0 in bf16 is BF16_Optimizer, whose states the replicas share: taken as zero1 "
        "with FP32 gradients; it all-reduces them, where zero1 reduce-scatters half the bytes");
  }

  const LaunchFiles& files_;
  SketchedJob& out_;
};

}  // namespace

bool has_part(const LaunchFiles& files, LaunchKind kind) {
  return std::ranges::any_of(files.parts,
                             [&](const LaunchPart& part) { return part.kind == kind; });
}

void settle_job(const LaunchFiles& files, SketchedJob& sketched) {
  Settling(files, sketched).run();
}

}  // namespace lockstep
