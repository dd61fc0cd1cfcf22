#include "sim/launch/launch_files.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fmt/format.h>
#include <iterator>

#include "models/base/input_error.hpp"
#include "models/base/text_file.hpp"
#include "sim/launch/command_words.hpp"
#include "sim/launch/launch_changes.hpp"
#include "sim/launch/named_files.hpp"
#include "sim/launch/primus_file.hpp"
#include "sim/launch/shell_script.hpp"
#include "sim/launch/tree_text.hpp"

namespace lockstep {
namespace {

constexpr std::array<std::string_view, 15> kTitles{
    "Megatron-LM arguments",   "NeMo YAML",
    "Megatron-Bridge YAML",    "TorchTitan settings",
    "DeepSpeed JSON",          "Accelerate YAML",
    "Trainer arguments",       "MaxText settings",
    "GPT-NeoX YAML",           "Nanotron YAML",
    "torchtune YAML",          "LLM Foundry YAML",
    "Levanter YAML",           "Colossal-AI arguments",
    "Hugging Face config.json"};
static_assert(kTitles.size() == static_cast<std::size_t>(LaunchKind::model) + 1);

/// Keys that only one kind of file has; the first kind with one of them it is.
struct KindMark {
  LaunchKind kind;
  std::string_view keys;  ///< with blanks between; "*" stands for any letters
};
constexpr std::array kTreeMarks{
    KindMark{LaunchKind::torchtune,
             "model._component_ tokenizer._component_ dataset._component_ loss._component_ "
             "checkpointer._component_ optimizer._component_"},
    KindMark{LaunchKind::nanotron,
             "model.model_config.* parallelism.pp_engine parallelism.tp_mode "
             "tokens.batch_accumulation_per_replica optimizer.optimizer_factory.*"},
    KindMark{LaunchKind::foundry,
             "global_train_batch_size device_train_microbatch_size train_loader.* "
             "model.d_model parameters.train_loader.*"},
    KindMark{LaunchKind::levanter,
             "trainer.per_device_parallelism trainer.fsdp_axis trainer.tensor_parallel_axes "
             "trainer.mp trainer.model_axis_size trainer.replica_dcn_axis_size"},
    KindMark{LaunchKind::neox,
             "pipe_parallel_size gpt_j_residual no_weight_tying output_layer_parallelism "
             "scaled_upper_triang_masked_softmax_fusion checkpoint_factor pos_emb "
             "attention_config.*"},
    KindMark{LaunchKind::megatron, "model_args.* *--tensor_model_parallel_size*"},
    KindMark{LaunchKind::accelerate,
             "compute_environment distributed_type num_machines deepspeed_config.zero_stage "
             "downcast_bf16"},
    KindMark{LaunchKind::nemo,
             "trainer.num_nodes trainer.devices exp_manager.* "
             "model.encoder_seq_length trainer.precision"},
    KindMark{LaunchKind::maxtext,
             "ici_* dcn_* per_device_batch_size base_emb_dim "
             "max_target_length base_num_decoder_layers remat_policy"},
    KindMark{LaunchKind::deepspeed,
             "zero_optimization.* train_batch_size train_micro_batch_size_per_gpu fp16.enabled "
             "bf16.enabled activation_checkpointing.*"},
    KindMark{LaunchKind::torchtitan,
             "training.local_batch_size training.seq_len parallelism.* model.flavor job.* "
             "activation_checkpoint.*"},
    KindMark{LaunchKind::trainer,
             "per_device_train_batch_size model_name_or_path base_model sequence_len cutoff_len "
             "output_dir num_train_epochs"},
    KindMark{LaunchKind::accelerate, "fsdp_config.fsdp_version"},
    KindMark{LaunchKind::bridge,
             "train.* model.* ddp.* dist.* checkpoint.* optimizer.* recipe "
             "tensor_model_parallel_size"},
    // Beside another file of GPT-NeoX: where the data lies, and who launches.
    KindMark{LaunchKind::neox, "data_impl train_data_paths vocab_file data_path tensorboard_dir"},
    KindMark{LaunchKind::model, "model_type architectures"},
};

constexpr std::array kArgumentMarks{
    KindMark{LaunchKind::megatron,
             "tensor_model_parallel_size num_layers hidden_size pipeline_model_parallel_size "
             "micro_batch_size global_batch_size use_mcore_models"},
    KindMark{LaunchKind::trainer,
             "model.partial_pretrain data.micro_batch_size_per_gpu actor_rollout_ref.*"},
    KindMark{LaunchKind::torchtitan,
             "training.* parallelism.* job.* model.flavor compile.* "
             "profiling.enable_profiling"},
    KindMark{LaunchKind::nemo, "trainer.*"},
    KindMark{LaunchKind::bridge, "model.* train.*"},
    KindMark{LaunchKind::maxtext, "per_device_batch_size ici_* dcn_* max_target_length"},
    KindMark{LaunchKind::trainer,
             "per_device_train_batch_size model_name_or_path output_dir num_train_epochs "
             "gradient_accumulation_steps deepspeed_config deepspeed micro_train_batch_size"},
};

template <std::size_t N>
const KindMark* marked(const std::array<KindMark, N>& marks, const std::vector<Setting>& settings) {
  for (const KindMark& mark : marks) {
    const std::array<KeyRow, 1> rows{KeyRow{mark.keys}};
    const std::array<std::span<const KeyRow>, 1> table{rows};
    for (const Setting& one : settings) {
      if (find_row(table, plain_key(one.key)) != nullptr) return &mark;
    }
  }
  return nullptr;
}

[[noreturn]] void refuse_file(const std::string& file, const std::string& found) {
  throw InputError(
      {.file = file,
       .pointer = {},
       .found = found,
       .allowed =
           "a script or arguments of Megatron-LM, NeMo or Megatron-Bridge YAML, "
           "TorchTitan TOML, DeepSpeed JSON, Accelerate YAML, Trainer "
           "arguments, MaxText, GPT-NeoX, Nanotron, torchtune, LLM Foundry, Levanter or Primus "
           "YAML, "
           "or arguments of Colossal-AI",
       .nearest = {}});
}

std::string first_line(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::vector<std::string> words = words_of(text.substr(at, end - at));
    if (!words.empty() && !words[0].starts_with('#')) return words[0];
    at = end + 1;
  }
  return {};
}

/// Whether braces hold JSON: files of GPT-NeoX have a brace, comments and commas at the end.
bool is_json(const std::string& text) {
  try {
    (void)read_json_settings("", text);
    return true;
  } catch (const InputError&) {
    return false;
  }
}

bool is_key_of_yaml(std::string_view word) {
  if (word == "---") return true;
  if (!word.ends_with(':') || word.size() < 2) return false;
  return std::ranges::all_of(word.substr(0, word.size() - 1), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  });
}

/// Reads one file after another, each by its kind.
class Files {
 public:
  Files(const std::vector<std::string>& files, const std::vector<std::string>& set)
      : texts_(read_texts(files)), changes_(set, out_), named_(out_, changes_) {
    for (std::size_t i = 0; i < files.size(); ++i) read(files[i], texts_[i]);
  }

  LaunchFiles take() {
    std::ranges::stable_sort(out_.parts, {}, [](const LaunchPart& part) {
      return part.launcher.empty() && part.kind != LaunchKind::megatron ? 0 : 1;
    });
    std::size_t known = 0;
    for (const LaunchPart& part : out_.parts) known += part.settings.size();
    if (known == 0) refuse_file(out_.parts.empty() ? "" : out_.parts.front().file, "no setting");
    changes_.apply();
    return std::move(out_);
  }

 private:
  std::vector<std::string> read_texts(const std::vector<std::string>& files) {
    std::vector<std::string> texts;
    for (const std::string& file : files) {
      texts.push_back(read_text_file(file, kMostLaunchBytes));
      if (texts.back().find('\0') != std::string::npos) refuse_file(file, "bytes that are no text");
      out_.texts += texts.back() + "\n";
    }
    return texts;
  }

  void read(const std::string& file, const std::string& text) {
    const std::string first = first_line(text);
    const std::string extension = lower(std::filesystem::path(file).extension().string());
    if (first.empty()) refuse_file(file, "no text");
    const bool yaml = extension == ".yaml" || extension == ".yml";
    if (first.starts_with('{') && !(yaml && !is_json(text))) {
      add_tree(file, read_json_settings(file, text), extension);
    } else if (extension == ".toml" || (first.starts_with('[') && first.ends_with(']') &&
                                        first != "[" && !first.starts_with("[["))) {
      add_tree(file, read_toml_settings(file, text), extension);
    } else if (yaml || (is_key_of_yaml(first) && !text.starts_with("#!"))) {
      add_tree(file, changes_.filled(read_yaml_settings(file, text)), extension);
    } else {
      add_script(file, text);
    }
  }

  void add_tree(const std::string& file, std::vector<Setting> settings,
                const std::string& extension) {
    if (is_primus(settings)) {
      add_primus(file, settings);
      return;
    }
    const KindMark* mark = marked(kTreeMarks, settings);
    if (mark == nullptr) {
      refuse_file(file, settings.empty() ? "no keys"
                                         : fmt::format("keys of no such file ({})",
                                                       in_quotes(settings.front().key)));
    }
    LaunchKind kind = mark->kind;
    const bool is_shape = marked(std::array{kTreeMarks.back()}, settings) != nullptr &&
                          extension == ".json" && kind != LaunchKind::deepspeed;
    if (is_shape) kind = LaunchKind::model;
    if (kind == LaunchKind::megatron) {
      for (Setting& one : settings) {  // MODEL_ARGS: --key: value
        if (one.key.find("--") != std::string::npos) one.key.erase(0, one.key.find("--"));
      }
      std::erase_if(settings, [](const Setting& one) { return !one.key.starts_with("--"); });
    }
    if (kind == LaunchKind::foundry) {  // MosaicML's platform has them all below "parameters"
      constexpr std::string_view kAll = "parameters.";
      for (Setting& one : settings) {
        if (one.key.starts_with(kAll)) one.key.erase(0, kAll.size());
      }
    }
    out_.parts.push_back({file, kind, {}, std::move(settings)});
  }

  void add_primus(const std::string& file, const std::vector<Setting>& settings) {
    PrimusJob job = read_primus(file, settings);
    const LaunchKind kind = job.framework == "torchtitan"        ? LaunchKind::torchtitan
                            : job.framework == "maxtext"         ? LaunchKind::maxtext
                            : job.framework == "megatron_bridge" ? LaunchKind::bridge
                                                                 : LaunchKind::megatron;
    std::ranges::move(job.remarks, std::back_inserter(out_.remarks));
    out_.texts += job.texts;
    out_.parts.push_back({file, kind, {}, std::move(job.settings)});
  }

  void add_script(const std::string& file, const std::string& text) {
    ShellVariables variables(file);
    changes_.fix(text, variables);
    const ShellScript script = read_shell_script(
        file, text, variables,
        [&](const std::string& path) { return named_.sourced_text(file, path, variables); });
    CommandWords words = training_command(script, variables, file);
    add_written(file, script);
    const bool titan = words.program.find("torchtitan") != std::string::npos ||
                       text.find("torchtitan") != std::string::npos;
    const KindMark* mark = marked(kArgumentMarks, words.arguments);
    LaunchKind kind = mark != nullptr ? mark->kind : LaunchKind::trainer;
    if (titan && kind != LaunchKind::megatron) kind = LaunchKind::torchtitan;
    if (words.program.find("MaxText") != std::string::npos ||
        words.program.find("maxtext") != std::string::npos) {
      kind = LaunchKind::maxtext;
    }
    const bool colossal = !words.runners.empty() && words.runners[0] == "colossalai";
    const bool tune = !words.runners.empty() && words.runners[0] == "tune";
    if (mark == nullptr && words.launcher.empty() && words.program.empty() && !tune) {
      refuse_file(file, words.arguments.empty() ? "no command with options"
                                                : "options of no such software");
    }
    if (is_program(words, "deepy.py")) kind = LaunchKind::neox;
    if (is_program(words, "run_train.py")) kind = LaunchKind::nanotron;
    if (words.program.find("levanter") != std::string::npos) kind = LaunchKind::levanter;
    if (colossal) kind = LaunchKind::colossal;
    if (!words.runners.empty() && words.runners[0] == "composer") {
      for (Setting& one : words.launcher) {
        if (plain_key(one.key) == "n") one.key = "nproc_per_node";
      }
      if (!words.files.empty()) kind = LaunchKind::foundry;
    }
    if (tune) {
      kind = LaunchKind::torchtune;
      leave_out_recipe(words.arguments);
    }
    constexpr std::array kNamesConfigs{LaunchKind::neox, LaunchKind::nanotron, LaunchKind::levanter,
                                       LaunchKind::foundry};
    if (tune || std::ranges::find(kNamesConfigs, kind) != kNamesConfigs.end()) {
      named_.add_named_configs(file, kind, words.arguments, words.files);
    }
    if (tune) named_.leave_to_tune(words.arguments);
    if (kind == LaunchKind::trainer) {
      named_.add_launched_config(file, LaunchKind::accelerate, "config_file", words.launcher);
    } else if (kind == LaunchKind::torchtitan) {
      named_.add_launched_config(file, kind, "job.config_file", words.arguments);
    }
    if (kind == LaunchKind::maxtext) {
      for (const std::string& config : words.files) {
        named_.add_maxtext_config(file, config, words.arguments);
      }
    }
    find_node_variable(variables);
    LaunchPart part{file, kind, std::move(words.launcher), std::move(words.arguments)};
    out_.parts.push_back(std::move(part));
  }

  /// "--nproc_per_node 8 full_finetune_distributed": the recipe stands behind an option's value.
  /// And "~compile" takes a key of the file away.
  static void leave_out_recipe(std::vector<Setting>& arguments) {
    std::vector<Setting> gone;
    for (Setting& one : arguments) {
      for (const std::string& value : one.values) {
        if (value.starts_with('~')) gone.push_back({value.substr(1), {"null"}, one.file});
      }
      std::erase_if(one.values, [](const std::string& value) { return value.starts_with('~'); });
    }
    std::ranges::move(gone, std::back_inserter(arguments));
    const std::array<std::span<const KeyRow>, 1> launcher{launcher_keys()};
    for (Setting& one : arguments) {
      const bool torchrun = find_row(launcher, plain_key(one.key)) != nullptr;
      if (torchrun && one.values.size() > 1) one.values.resize(1);
    }
  }

  static bool is_program(const CommandWords& words, std::string_view name) {
    return std::filesystem::path(words.program).filename() == name;
  }

  /// Files that the script writes itself: DeepSpeed's settings, most of all.
  void add_written(const std::string& file, const ShellScript& script) {
    for (const auto& [name, text] : script.written) {
      if (!first_line(text).starts_with('{')) continue;
      const std::string origin = file + ":" + std::filesystem::path(name).filename().string();
      try {
        std::vector<Setting> settings = read_json_settings(origin, text);
        if (marked(kTreeMarks, settings) == nullptr) continue;
        out_.parts.push_back({origin, LaunchKind::deepspeed, {}, std::move(settings)});
      } catch (const InputError& error) {
        out_.remarks.push_back(
            fmt::format("{} is no JSON until its variables have values (--set)", origin));
      }
    }
  }

  void find_node_variable(const ShellVariables& variables) {
    for (const char* const name : {"NUM_NODES", "NNODES", "SLURM_NNODES", "SLURM_JOB_NUM_NODES",
                                   "N_NODES", "NODES", "NODE_COUNT", "WORLD_NODES"}) {
      const bool read_alone = mentions(out_.texts, name) && !variables.value(name);
      if (variables.value(name) || read_alone) {
        out_.node_variable = name;
        return;
      }
    }
  }

  LaunchFiles out_;
  std::vector<std::string> texts_;
  LaunchChanges changes_;
  NamedFiles named_;
};

}  // namespace

std::string_view title_of(LaunchKind kind) { return kTitles[static_cast<std::size_t>(kind)]; }

LaunchFiles read_launch_files(const std::vector<std::string>& files,
                              const std::vector<std::string>& set) {
  return Files(files, set).take();
}

}  // namespace lockstep
