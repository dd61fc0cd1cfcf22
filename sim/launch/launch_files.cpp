#include "sim/launch/launch_files.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fmt/format.h>
#include <optional>
#include <set>
#include <system_error>

#include "models/base/input_error.hpp"
#include "models/base/text_file.hpp"
#include "sim/launch/command_words.hpp"
#include "sim/launch/shell_script.hpp"
#include "sim/launch/tree_text.hpp"

namespace lockstep {
namespace {

constexpr std::size_t kMostLaunchBytes = std::size_t{4} << 20;

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
           "arguments, MaxText, GPT-NeoX, Nanotron, torchtune, LLM Foundry or Levanter YAML, "
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

/// Whether `name` stands in the text as a word of its own.
bool mentions(std::string_view text, std::string_view name) {
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  for (std::size_t at = text.find(name); at != std::string_view::npos;
       at = text.find(name, at + 1)) {
    const bool begins = at == 0 || !letter(text[at - 1]);
    const std::size_t end = at + name.size();
    if (begins && (end == text.size() || !letter(text[end]))) return true;
  }
  return false;
}

/// The path of a file that a script names, from the script's folder: "env.sh", "./conf/env.sh", and
/// with what stands for that folder, "$(dirname $0)/env.sh", "${BASH_SOURCE%/*}/env.sh". Empty: no
/// such file is there, or the path leaves the folder.
std::string file_beside(const std::string& script, const std::string& path) {
  namespace fs = std::filesystem;
  std::string relative = path;
  if (path.starts_with("$(") || path.starts_with("${BASH_SOURCE")) {
    const std::size_t end = path.rfind(path[1] == '(' ? ")/" : "}/");
    if (end == std::string::npos) return {};
    relative = path.substr(end + 2);
  }
  const fs::path asked(relative);
  const bool leaves = asked.is_absolute() || relative.find('$') != std::string::npos ||
                      std::ranges::find(asked, fs::path("..")) != asked.end();
  if (leaves || relative.empty()) return {};
  const fs::path found = fs::path(script).parent_path() / asked;
  std::error_code error;
  return fs::is_regular_file(found, error) ? found.lexically_normal().string() : std::string();
}

class Files {
 public:
  Files(const std::vector<std::string>& files, const std::vector<std::string>& set) {
    for (const std::string& file : files) {
      texts_.push_back(read_text_file(file, kMostLaunchBytes));
      if (texts_.back().find('\0') != std::string::npos)
        refuse_file(file, "bytes that are no text");
      out_.texts += texts_.back() + "\n";
    }
    split_changes(set);
    for (std::size_t i = 0; i < files.size(); ++i) read(files[i], texts_[i]);
  }

  LaunchFiles take() {
    std::ranges::stable_sort(out_.parts, {}, [](const LaunchPart& part) {
      return part.launcher.empty() && part.kind != LaunchKind::megatron ? 0 : 1;
    });
    std::size_t known = 0;
    for (const LaunchPart& part : out_.parts) known += part.settings.size();
    if (known == 0) refuse_file(out_.parts.empty() ? "" : out_.parts.front().file, "no setting");
    apply_changes();
    return std::move(out_);
  }

 private:
  struct Change {
    std::string name, value;
    bool used = false;
  };

  void split_changes(const std::vector<std::string>& set) {
    constexpr std::array<std::string_view, 14> kTop{
        "cluster", "model", "parallelism", "batch", "stack", "recompute", "routing",
        "offload", "about", "precision",   "lora",  "power", "training",  "frozen"};
    for (const std::string& one : set) {
      const std::size_t equals = one.find('=');
      if (equals == std::string::npos || equals == 0) {
        throw InputError({.file = "--set",
                          .pointer = {},
                          .found = in_quotes(one),
                          .allowed = "NAME=VALUE: a variable of a script, a key of a file, or a "
                                     "path of the scenario",
                          .nearest = {}});
      }
      const std::string name = one.substr(0, equals);
      const std::string top = name.substr(0, name.find('.'));
      const bool of_scenario = std::ranges::find(kTop, std::string_view(top)) != kTop.end();
      if (of_scenario && !mentions(out_.texts, name)) {
        out_.scenario.push_back(one);
      } else {
        // What the files mention, positional words of a script ($1), or a key that they lack.
        changes_.push_back({name, one.substr(equals + 1), false});
      }
    }
  }

  [[nodiscard]] bool has_key(const std::string& name) const {
    return std::ranges::any_of(out_.parts, [&](const LaunchPart& part) {
      return std::ranges::any_of(
          part.settings, [&](const Setting& one) { return plain_key(one.key) == plain_key(name); });
    });
  }

  /// Sections of files have names that a scenario's have too ([parallelism] of TorchTitan): what a
  /// file says under them is its own key.
  void take_keys_of_sections() {
    std::vector<std::string> paths;
    for (const std::string& one : out_.scenario) {
      const std::size_t equals = one.find('=');
      if (has_key(one.substr(0, equals))) {
        changes_.push_back({one.substr(0, equals), one.substr(equals + 1), false});
      } else {
        paths.push_back(one);
      }
    }
    out_.scenario = std::move(paths);
  }

  /// Values of keys; one that no file has becomes a setting of the last of them.
  void apply_changes() {
    take_keys_of_sections();
    for (Change& change : changes_) {
      const std::string wanted = plain_key(change.name);
      for (LaunchPart& part : out_.parts) {
        for (std::vector<Setting>* list : {&part.launcher, &part.settings}) {
          for (Setting& one : *list) {
            const std::string key = plain_key(one.key);
            if (key != wanted && last_part(key) != wanted) continue;
            one.values = {change.value};
            change.used = true;
          }
        }
      }
      if (change.used || variables_used_.contains(change.name) || out_.parts.empty()) continue;
      out_.parts.back().settings.push_back({change.name, {change.value}, "--set"});
    }
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
      add_tree(file, filled_by_changes(read_yaml_settings(file, text)), extension);
    } else {
      add_script(file, text);
    }
  }

  /// Launchers fill "${TP}" in their YAML from the environment; here --set does.
  std::vector<Setting> filled_by_changes(std::vector<Setting> settings) {
    for (const Change& change : changes_) {
      const std::string name = fmt::format("${{{}}}", change.name);
      for (Setting& one : settings) {
        for (std::string& value : one.values) {
          if (value.find(name) != std::string::npos) variables_used_.insert(change.name);
          for (std::size_t at = value.find(name); at != std::string::npos;
               at = value.find(name, at + change.value.size())) {
            value.replace(at, name.size(), change.value);
          }
        }
      }
    }
    return settings;
  }

  void add_tree(const std::string& file, std::vector<Setting> settings,
                const std::string& extension) {
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

  /// Gives the variables that a text speaks of the values of `--set`.
  void fix_changes(const std::string& text, ShellVariables& variables) {
    for (const Change& change : changes_) {
      if (!mentions(text, change.name) && !(change.name[0] >= '0' && change.name[0] <= '9'))
        continue;
      variables.fix(change.name, change.value);
      variables_used_.insert(change.name);
    }
  }

  /// What a script sources, where it stands beside it; else a remark says that it is unknown.
  std::optional<std::string> sourced_text(const std::string& script, const std::string& path,
                                          ShellVariables& variables) {
    namespace fs = std::filesystem;
    const std::string name = fs::path(path).filename().string();
    constexpr std::array<std::string_view, 5> kShellsOwn{"activate", "conda.sh", ".bashrc",
                                                         ".bash_profile", "profile"};
    if (std::ranges::find(kShellsOwn, std::string_view(name)) != kShellsOwn.end()) return {};
    const std::string file = file_beside(script, path);
    if (!file.empty() && sourced_.contains(file)) return {};
    const std::string own = fs::path(script).filename().string();
    std::string text = file.empty() ? std::string() : read_text_file(file, kMostLaunchBytes);
    if (file.empty() || text.find('\0') != std::string::npos) {
      out_.remarks.push_back(fmt::format(
          "{} is sourced and not beside {}: its variables are unknown (--set NAME=VALUE)", path,
          own));
      return {};
    }
    sourced_.insert(file);
    out_.remarks.push_back(fmt::format("{}: read, as {} sources it", name, own));
    out_.texts += text + "\n";
    fix_changes(text, variables);
    return text;
  }

  void add_script(const std::string& file, const std::string& text) {
    ShellVariables variables(file);
    fix_changes(text, variables);
    const ShellScript script = read_shell_script(
        file, text, variables,
        [&](const std::string& path) { return sourced_text(file, path, variables); });
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
      add_named_configs(file, kind, words.arguments, words.files);
    }
    if (tune) leave_to_tune(words.arguments);
    if (kind == LaunchKind::trainer) {
      add_launched_config(file, LaunchKind::accelerate, "config_file", words.launcher);
    } else if (kind == LaunchKind::torchtitan) {
      add_launched_config(file, kind, "job.config_file", words.arguments);
    }
    if (kind == LaunchKind::maxtext) {
      for (const std::string& config : words.files) add_config(file, config, words.arguments);
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

  /// What a command of torchtune says, null too, or takes away ("~compile") its files say no more
  /// (meta-pytorch/torchtune, torchtune/config/_utils.py, _merge_yaml_and_cli_args).
  void leave_to_tune(const std::vector<Setting>& arguments) {
    for (LaunchPart& part : out_.parts) {
      if (part.kind != LaunchKind::torchtune) continue;
      std::erase_if(part.settings, [&](const Setting& one) {
        const std::string key = plain_key(one.key);
        return std::ranges::any_of(arguments, [&](const Setting& other) {
          const std::string said = plain_key(other.key);
          return key == said || key.starts_with(said + ".");
        });
      });
    }
  }

  static bool is_program(const CommandWords& words, std::string_view name) {
    return std::filesystem::path(words.program).filename() == name;
  }

  /// YAML that a command names, "configs/1-3B.yml" or "--config llama3_1/8B_lora": read where it
  /// stands beside the script, else a remark.
  void add_named_configs(const std::string& script, LaunchKind kind,
                         const std::vector<Setting>& arguments, std::vector<std::string> paths) {
    namespace fs = std::filesystem;
    for (const Setting& one : arguments) {
      const std::string key = plain_key(one.key);
      constexpr std::array<std::string_view, 5> kNaming{"config", "config_file", "config_path", "d",
                                                        "conf_dir"};
      if (std::ranges::find(kNaming, key) == kNaming.end()) continue;
      for (const std::string& value : one.values) {
        if (value.ends_with(".yml") || value.ends_with(".yaml")) {
          paths.push_back(value);
        } else if (key == "config") {
          paths.push_back(value + ".yaml");
        }
      }
    }
    for (const std::string& path : paths) {
      const std::string name = fs::path(path).filename().string();
      const bool given = std::ranges::any_of(out_.parts, [&](const LaunchPart& part) {
        return part.kind == kind && fs::path(part.file).filename() == name;
      });
      if (given) continue;
      const std::string beside = file_beside(script, path);
      if (beside.empty()) {
        out_.remarks.push_back(
            fmt::format("{}: not given, and its keys count: give it before the script", path));
        continue;
      }
      out_.parts.push_back(
          {beside, kind, {}, read_yaml_settings(beside, read_text_file(beside, kMostLaunchBytes))});
      out_.remarks.push_back(
          fmt::format("{}: read, as {} names it", name, fs::path(script).filename().string()));
    }
  }

  /// The file that an option names ("accelerate launch --config_file fsdp.yaml"), where it stands
  /// beside the script and is not among those given. What is not there, its row tells.
  void add_launched_config(const std::string& script, LaunchKind kind, std::string_view option,
                           const std::vector<Setting>& settings) {
    namespace fs = std::filesystem;
    for (const Setting& one : settings) {
      if (plain_key(one.key) != option || one.values.empty()) continue;
      const std::string name = fs::path(one.values.front()).filename().string();
      const auto last = std::ranges::find_if(
          out_.parts, [&](const LaunchPart& part) { return part.kind == kind; });
      if (last != out_.parts.end()) continue;
      const std::string beside = file_beside(script, one.values.front());
      if (beside.empty()) continue;
      const std::string text = read_text_file(beside, kMostLaunchBytes);
      out_.texts += text + "\n";
      out_.parts.push_back({beside,
                            kind,
                            {},
                            kind == LaunchKind::accelerate
                                ? filled_by_changes(read_yaml_settings(beside, text))
                                : read_toml_settings(beside, text)});
      out_.remarks.push_back(
          fmt::format("{}: read, as {} names it", name, fs::path(script).filename().string()));
    }
  }

  /// The file of settings that a MaxText command names: one of those given, one beside the script,
  /// or MaxText's own base.yml, whose values hold where the command says nothing else.
  void add_config(const std::string& script, const std::string& path,
                  const std::vector<Setting>& arguments) {
    namespace fs = std::filesystem;
    const std::string name = fs::path(path).filename().string();
    const auto is_it = [&](const LaunchPart& part) {
      return part.kind == LaunchKind::maxtext && fs::path(part.file).filename() == name;
    };
    auto given = std::ranges::find_if(out_.parts, is_it);
    const std::string own = fs::path(script).filename().string();
    const std::string beside = file_beside(script, path);
    if (given == out_.parts.end() && (!beside.empty() || name == "base.yml")) {
      std::vector<Setting> settings =
          beside.empty() ? own_base(path)
                         : read_yaml_settings(beside, read_text_file(beside, kMostLaunchBytes));
      out_.remarks.push_back(
          beside.empty()
              ? fmt::format(
                    "{}: not given; batch, length and remat_policy as MaxText's base.yml of "
                    "2024 has them, where the command leaves them out",
                    path)
              : fmt::format("{}: read, as {} names it", name, own));
      out_.parts.push_back({beside.empty() ? path : beside, LaunchKind::maxtext, {}, settings});
      given = out_.parts.end() - 1;
    }
    if (given == out_.parts.end()) {
      out_.remarks.push_back(fmt::format("{}: not given, and its keys count: give it too", path));
      return;
    }
    leave_to_command(given->settings, arguments);
  }

  /// What MaxText's base.yml says of a step (AI-Hypercomputer/maxtext, MaxText/configs/base.yml).
  static std::vector<Setting> own_base(const std::string& path) {
    return {{"per_device_batch_size", {"12.0"}, path},
            {"max_target_length", {"2048"}, path},
            {"remat_policy", {"full"}, path},
            {"dtype", {"bfloat16"}, path}};
  }

  /// The command goes before the file that it names; where it names a model, that model's sizes go
  /// before those of the file (MaxText/pyconfig.py, update_model_vars).
  static void leave_to_command(std::vector<Setting>& settings,
                               const std::vector<Setting>& arguments) {
    const auto says = [&](const std::string& key) {
      return std::ranges::any_of(
          arguments, [&](const Setting& one) { return plain_key(one.key) == plain_key(key); });
    };
    constexpr std::array kSizes{KeyRow{
        "base_* head_dim vocab_size mlp_activations num_experts num_experts_per_tok "
        "logits_via_embedding decoder_block shared_experts first_num_dense_layers attention_type "
        "interleave_moe_layer_step q_lora_rank kv_lora_rank qk_nope_head_dim qk_rope_head_dim "
        "v_head_dim mtp_num_layers"}};
    const std::array<std::span<const KeyRow>, 1> sizes{kSizes};
    const bool model = std::ranges::any_of(arguments, [](const Setting& one) {
      return plain_key(one.key) == "model_name" && one.text() != "default";
    });
    std::erase_if(settings, [&](const Setting& one) {
      return says(one.key) || (model && find_row(sizes, plain_key(one.key)) != nullptr);
    });
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

  std::vector<std::string> texts_;
  std::vector<Change> changes_;
  std::set<std::string> variables_used_;
  std::set<std::string> sourced_;  ///< files that scripts source, each read once
  LaunchFiles out_;
};

}  // namespace

std::string_view title_of(LaunchKind kind) { return kTitles[static_cast<std::size_t>(kind)]; }

LaunchFiles read_launch_files(const std::vector<std::string>& files,
                              const std::vector<std::string>& set) {
  return Files(files, set).take();
}

}  // namespace lockstep
