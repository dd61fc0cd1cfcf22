// From the keys of launch files to what they say of the job.
#include <algorithm>
#include <array>
#include <filesystem>
#include <fmt/format.h>
#include <utility>

#include "models/base/input_error.hpp"
#include "sim/launch/launch_files.hpp"

namespace lockstep {
namespace {

using Tables = std::vector<std::span<const KeyRow>>;

Tables tables_of(LaunchKind kind) {
  switch (kind) {
    case LaunchKind::megatron:
      return {megatron_keys(), megatron_deepspeed_keys(), megatron_other_keys(), deepspeed_keys()};
    case LaunchKind::nemo:
    case LaunchKind::bridge:
      return {megatron_keys(), nemo_keys(), megatron_other_keys()};
    case LaunchKind::torchtitan:
      return {torchtitan_keys()};
    case LaunchKind::deepspeed:
      return {deepspeed_keys()};
    case LaunchKind::accelerate:
      return {accelerate_keys(), deepspeed_keys()};
    case LaunchKind::trainer:
      return {trainer_keys(), post_training_keys(), accelerate_keys(), deepspeed_keys()};
    case LaunchKind::maxtext:
      return {maxtext_keys()};
    case LaunchKind::neox:
      return {neox_keys(), deepspeed_keys()};
    case LaunchKind::nanotron:
      return {nanotron_keys()};
    case LaunchKind::torchtune:
      return {torchtune_keys()};
    case LaunchKind::foundry:
      return {foundry_keys()};
    case LaunchKind::levanter:
      return {levanter_keys()};
    case LaunchKind::colossal:
      return {colossal_keys()};
    case LaunchKind::model:
      return {};
  }
  return {};
}

/// A key of NeMo 2 by the name that it had in NeMo 1 and has in Megatron-LM, or nothing:
/// "trainer.strategy.tensor_model_parallel_size", "trainer.plugins.precision",
/// "optim.config.use_distributed_optimizer", "trainer.callbacks.0.tp_comm_overlap"
/// (NVIDIA/NeMo, nemo/lightning/pytorch/strategies/megatron_strategy.py, nemo/lightning/run).
std::string_view key_of_nemo_2(std::string_view key) {
  for (const std::string_view section :
       {"trainer.strategy.", "trainer.plugins.", "optim.config."}) {
    if (key.starts_with(section)) return last_part(key);
  }
  const std::string_view last = last_part(key);
  const bool overlap = last.starts_with("tp_comm_overlap") || last.starts_with("overlap_");
  return key.starts_with("trainer.callbacks.") && overlap ? last : std::string_view();
}

/// The row of a key: by its whole name, without a first part that stands for the file's one
/// section, and where the kind of file has it so, by its last part.
const KeyRow* row_of(LaunchKind kind, const Tables& tables, const std::string& key) {
  if (const KeyRow* row = find_row(tables, key); row != nullptr && row->use != nullptr) return row;
  const bool sections = kind == LaunchKind::nemo || kind == LaunchKind::bridge;
  if (const std::string_view old = key_of_nemo_2(key); sections && !old.empty()) {
    const KeyRow* const row = find_row(tables, old);
    if (row != nullptr && (row->use != nullptr || row->fate == KeyFate::unmodelled)) return row;
  }
  if (sections) {
    std::string inner = key;
    for (const char* const top : {"training.", "model.", "config."}) {
      if (inner.starts_with(top)) inner.erase(0, std::string_view(top).size());
    }
    const KeyRow* const whole = find_row(tables, inner);
    if (whole != nullptr && whole->use != nullptr) return whole;
    const bool is_step = key.starts_with("train.") || key.starts_with("ddp.") ||
                         key.starts_with("dist.") || key.starts_with("optim.") ||
                         key.starts_with("optimizer.") || key.starts_with("comm_overlap.") ||
                         key.starts_with("mixed_precision.") || key.starts_with("trainer.") ||
                         inner.starts_with("optim.") || key.starts_with("tokenizer.");
    if (is_step && std::ranges::count(inner, '.') <= 1) {
      const KeyRow* row = find_row(tables, last_part(key));
      if (row != nullptr && (row->use != nullptr || row->fate == KeyFate::unmodelled)) return row;
    }
    if (whole != nullptr) return whole;
  }
  if (kind == LaunchKind::accelerate || kind == LaunchKind::deepspeed) {
    const std::size_t point = key.find('.');
    if (point != std::string::npos && key.starts_with("deepspeed_config.")) {
      const KeyRow* row = find_row(tables, key.substr(point + 1));
      if (row != nullptr && row->use != nullptr) return row;
    }
  }
  return find_row(tables, key);
}

/// The names of variables in "${NAME}", and commands in "$(...)".
void add_open(const Setting& setting, std::vector<std::string>& out) {
  for (const std::string& value : setting.values) {
    const std::size_t begin = value.find("${");
    if (begin == std::string::npos) {
      if (value.find("$(") != std::string::npos) out.push_back(setting.key);
      continue;
    }
    const std::size_t end = std::min(value.find('}', begin), value.size());
    out.push_back(value.substr(begin + 2, end - begin - 2));
  }
}

/// Whether a word is a variable and nothing else, "${NAME}"; its name, or nothing.
std::string_view variable_alone(std::string_view word) {
  const bool shaped = word.size() > 3 && word.starts_with("${") && word.ends_with('}');
  const std::string_view name = shaped ? word.substr(2, word.size() - 3) : std::string_view();
  return name.find_first_of("${}:.") == std::string_view::npos ? name : std::string_view();
}

/// Whether the row's key is a switch, which takes "true" and no number.
bool is_switch(const KeyRow& row, const Setting& setting) {
  const auto takes = [&](const char* value) {
    try {
      JobSketch scratch;
      row.use(scratch, {setting.key, {value}, setting.file});
    } catch (const InputError&) {
      return false;
    }
    return true;
  };
  return row.use != nullptr && takes("true") && !takes("17");
}

class Sketching {
 public:
  explicit Sketching(const LaunchFiles& files) : files_(files) {}

  SketchedJob take() {
    for (const LaunchPart& part : files_.parts) {
      if (part.kind == LaunchKind::model) {
        out_.job.model.config = part.file;
        continue;
      }
      const Tables tables = tables_of(part.kind);
      const Tables launcher{launcher_keys()};
      for (const Setting& one : part.launcher) add(part.kind, one, launcher, tables);
      for (const Setting& one : part.settings) add(part.kind, one, tables, launcher);
    }
    if (has(LaunchKind::neox)) settle_neox();
    if (has(LaunchKind::nanotron)) settle_nanotron();
    if (has(LaunchKind::torchtune)) settle_torchtune();
    if (has(LaunchKind::foundry)) settle_foundry();
    if (has(LaunchKind::levanter)) settle_levanter();
    if (has(LaunchKind::colossal)) settle_colossal();
    settle_checkpointing();
    guess_settings();
    guess_stage();
    settle_fsdp();
    settle_precision();
    settle_few_bits();
    settle_stage_zero();
    std::ranges::sort(out_.open);
    const auto twice = std::ranges::unique(out_.open);
    out_.open.erase(twice.begin(), twice.end());
    return std::move(out_);
  }

 private:
  /// The setting of a command as a shell expands it: an unset variable is no word. It is kept where
  /// a value is required, which the user then has to give.
  Setting without_unset_words(const Setting& setting, const KeyRow* row) {
    if (!setting.key.starts_with('-')) return setting;
    Setting out = setting;
    while (!out.values.empty() && !variable_alone(out.values.back()).empty()) {
      const bool wanted = out.values.size() == 1 && (row == nullptr || !is_switch(*row, setting));
      if (wanted) break;
      say_unset(variable_alone(out.values.back()));
      out.values.pop_back();
    }
    return out;
  }

  /// Remarks on an unset variable. One that the script sets on another path is empty on this one;
  /// others are unknown.
  void say_unset(std::string_view name) {
    if (files_.texts.find(fmt::format("{}=", name)) != std::string::npos) return;
    const std::string line = fmt::format(
        "{} is not in the file: what it may hold is left out (--set {}=VALUE)", name, name);
    if (std::ranges::find(out_.job.remarks, line) == out_.job.remarks.end()) {
      out_.job.remarks.push_back(line);
    }
  }

  /// Files whose name alone, or whose contents elsewhere among the files, say what is needed.
  [[nodiscard]] bool is_said_elsewhere(const std::string& key) const {
    constexpr std::array<std::string_view, 3> kDeepSpeedFile{"deepspeed", "deepspeed_config",
                                                             "deepspeed_config_file"};
    return std::ranges::find(kDeepSpeedFile, std::string_view(key)) != kDeepSpeedFile.end() &&
           std::ranges::any_of(files_.parts, [](const LaunchPart& part) {
             return part.kind == LaunchKind::deepspeed;
           });
  }

  /// What only a run of the file would fill in.
  void leave_open(const std::string& key, const Setting& setting, KeyFinding& found) {
    const bool only_words = key.find("tokenizer") != std::string::npos || is_said_elsewhere(key);
    found.fate = only_words ? KeyFate::harmless : KeyFate::unmodelled;
    if (only_words) return;
    constexpr std::array<std::string_view, 3> kProcesses{"nproc_per_node", "nprocs_per_node",
                                                         "num_gpus"};
    if (std::ranges::find(kProcesses, std::string_view(key)) != kProcesses.end()) {
      found.fate = KeyFate::harmless;
      found.note = "as many as the node has GPUs";
      return;
    }
    found.note = "its value is not in the file: --set";
    add_open(setting, out_.open);
  }

  /// Words that stand for a number that the user is to write ("your_num_nodes") are open too.
  void use(const KeyRow& row, const Setting& setting, KeyFinding& found) {
    const std::string text = lower(setting.text());
    constexpr std::array<std::string_view, 5> kStandIns{"your", "<", "todo", "fill", "xxx"};
    const bool is_open = text.find("your_") != std::string::npos ||
                         std::ranges::any_of(kStandIns, [&](std::string_view word) {
                           return text.starts_with(word);
                         });
    if (is_open) {
      found.fate = KeyFate::unmodelled;
      found.note = "its value is not in the file";
      return;
    }
    row.use(out_.job, setting);
    if (out_.job.not_modelled.empty()) return;
    found.fate = KeyFate::unmodelled;
    found.note = std::exchange(out_.job.not_modelled, {});
  }

  [[nodiscard]] bool has(LaunchKind kind) const {
    return std::ranges::any_of(files_.parts,
                               [&](const LaunchPart& part) { return part.kind == kind; });
  }

  /// What GPT-NeoX has where its keys say nothing, and what several of them say together
  /// (EleutherAI/gpt-neox, megatron/neox_arguments/neox_args.py).
  void settle_neox() {
    JobSketch& job = out_.job;
    ModelSketch& model = job.model;
    if (model.position_kind.empty()) model.position_kind = "learned_absolute";
    if (!job.neox_precision.empty()) job.precision = job.neox_precision;
    neox_mlp();
    if (model.parallel == true) {
      if (!model.separate_norms) model.separate_norms = true;
      if (model.experts) {
        model.parallel = false;
        job.remarks.emplace_back("gpt_j_residual beside experts: taken as one after the other");
      }
    }
  }

  /// The width of the MLP: LLaMA's own class takes it as it is, or 8 / 3 h up to a multiple of 256
  /// (megatron/model/transformer.py, LLaMAParallelMLP); ParallelMLP cuts that of a gated one to a
  /// third, so that "intermediate_size" is three times the width of its output.
  void neox_mlp() {
    JobSketch& job = out_.job;
    ModelSketch& model = job.model;
    constexpr std::array<std::string_view, 4> kGated{"geglu", "reglu", "bilinear", "swiglu"};
    const std::int64_t hidden = model.hidden.value_or(0);
    const auto up_to = [](std::int64_t value, std::int64_t multiple) {
      return static_cast<int>((value + multiple - 1) / multiple * multiple);
    };
    if (job.neox_mlp == "llama") {
      constexpr std::int64_t kMultiple = 256;
      model.gated = true;
      if (!model.ffn && hidden > 0) model.ffn = up_to(hidden * 8 / 3, kMultiple);
      return;
    }
    model.gated = std::ranges::find(kGated, job.neox_activation) != kGated.end();
    const double factor = job.neox_expansion.value_or(4);
    const std::int64_t whole =
        model.ffn ? *model.ffn : static_cast<std::int64_t>(factor * static_cast<double>(hidden));
    if (whole == 0) return;
    const std::int64_t multiple = job.neox_mlp_multiple.value_or(1);
    model.ffn = up_to(*model.gated ? whole * 2 / 3 / 2 : whole, multiple);
    if (*model.gated) {
      job.remarks.push_back(fmt::format(
          "GPT-NeoX cuts the width of a gated MLP, {}, to a third: {}", whole, *model.ffn));
    }
  }

  /// Its configurations are LLaMA's unless they say otherwise
  /// (huggingface/nanotron, src/nanotron/config/models_config.py); a job is all of its replicas.
  void settle_nanotron() {
    JobSketch& job = out_.job;
    ModelSketch& model = job.model;
    model.gated = model.gated.value_or(true);
    model.biases = model.biases.value_or(false);
    model.tied = model.tied.value_or(false);
    model.vocabulary_multiple = model.vocabulary_multiple.value_or(1);
    model.position_kind = "rope";
    if (job.schedule.empty()) job.schedule = "gpipe";
    if (!job.sequence) job.sequence = false;
    if (!job.data) return;
    constexpr std::int64_t kMostWidths = 16'000'000;
    std::int64_t all = 1;
    for (const std::optional<int>& width : {job.data, job.tensor, job.pipeline, job.context}) {
      all = std::min(kMostWidths, all * std::int64_t{width.value_or(1)});
    }
    job.gpus = static_cast<int>(all);
  }

  /// Builders of torchtune that take sizes are those of LLaMA-like decoders.
  void settle_torchtune() {
    ModelSketch& model = out_.job.model;
    model.gated = model.gated.value_or(true);
    model.biases = model.biases.value_or(false);
    model.tied = model.tied.value_or(false);
    model.vocabulary_is_padded = true;
    model.position_kind = "rope";
    if (model.layers) model.hint = std::exchange(model.name, {});
  }

  /// MPT, where a file says its sizes: an MLP without a gate, learned positions unless it has ALiBi
  /// or RoPE, biases, tied embeddings (llmfoundry/models/mpt/configuration_mpt.py). Weights are
  /// sharded by FSDP where the file has its section.
  void settle_foundry() {
    JobSketch& job = out_.job;
    ModelSketch& model = job.model;
    if (model.hidden) {
      model.gated = model.gated.value_or(false);
      model.biases = model.biases.value_or(true);
      model.tied = model.tied.value_or(true);
      if (model.position_kind.empty()) model.position_kind = "learned_absolute";
      if (!model.positions) model.positions = job.tokens;
      const double factor = job.neox_expansion.value_or(4);
      if (!model.ffn) model.ffn = static_cast<int>(factor * static_cast<double>(*model.hidden));
    }
    model.vocabulary_is_padded = true;
    const bool fsdp = std::ranges::any_of(out_.keys, [](const KeyFinding& key) {
      return plain_key(key.setting.key).starts_with("fsdp_config.");
    });
    if (job.sharding.empty()) job.sharding = fsdp ? "zero3" : "none";
    job.fsdp_version = 1;
  }

  /// Its models have LLaMA's form unless their type says otherwise; weights are sharded over all
  /// replicas and layers recomputed unless a key says otherwise.
  void settle_levanter() {
    JobSketch& job = out_.job;
    ModelSketch& model = job.model;
    model.gated = model.gated.value_or(true);
    model.biases = model.biases.value_or(false);
    model.tied = model.tied.value_or(false);
    model.vocabulary_is_padded = true;
    if (model.position_kind.empty()) model.position_kind = "rope";
    job.sharding = "zero3";
    if (job.recompute.empty()) job.recompute = "full";
    job.remarks.emplace_back("Levanter's software is taken as MaxText's: both run JAX");
  }

  /// "batch_size" is a replica's; a pipeline takes it in micro batches.
  void settle_colossal() {
    JobSketch& job = out_.job;
    if (!job.local) return;
    const int micro = job.micro.value_or(*job.local);
    job.micro = std::min(micro, *job.local);
    if (*job.local % *job.micro == 0) {
      constexpr std::int64_t kMostTogether = 100'000'000;
      const std::int64_t steps =
          std::int64_t{*job.local / *job.micro} * job.accumulation.value_or(1);
      job.accumulation = static_cast<int>(std::min(kMostTogether, steps));
    }
    job.local.reset();
  }

  /// Of a file of Accelerate's settings that a command names and that is not here: what its name
  /// has ("deepspeed_zero3.yaml", "fsdp2.yaml"). Of another one, and of TorchTitan's: a remark.
  void guess_settings() {
    JobSketch& job = out_.job;
    const bool titan = has(LaunchKind::torchtitan);
    if (job.settings_file.empty() || has(LaunchKind::accelerate)) return;
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

  void add(LaunchKind kind, const Setting& written, const Tables& first, const Tables& second) {
    const std::string key = plain_key(written.key);
    const KeyRow* row = row_of(kind, first, key);
    if (row == nullptr) row = row_of(kind, second, key);
    const Setting setting = without_unset_words(written, row);
    KeyFinding found{setting, KeyFate::unknown, {}};
    if (row != nullptr) {
      found.fate = row->fate;
      found.note = row->why;
      const bool by_name = key.find("vocab_file") != std::string::npos;
      if (setting.is_open() && row->fate == KeyFate::used && !by_name) {
        leave_open(key, setting, found);
      } else if (row->fate == KeyFate::used) {
        if (setting.is_null()) {
          found.fate = KeyFate::harmless;
        } else {
          use(*row, setting, found);
        }
      } else if (row->fate == KeyFate::unmodelled && setting.is_off()) {
        found.fate = KeyFate::harmless;  // it is switched off
        found.note.clear();
      }
    } else {
      Tables all = first;
      all.insert(all.end(), second.begin(), second.end());
      const std::vector<std::string> names = known_keys(all);
      const std::string nearest = key.size() > 3 ? nearest_name(key, names) : "";
      if (!nearest.empty()) found.note = fmt::format("did you mean {}?", in_quotes(nearest));
    }
    out_.keys.push_back(std::move(found));
  }

  const LaunchFiles& files_;
  SketchedJob out_;
};

}  // namespace

SketchedJob sketch_job(const LaunchFiles& files) { return Sketching(files).take(); }

}  // namespace lockstep
