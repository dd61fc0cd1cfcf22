// From the keys of launch files to what they say of the job.
#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <utility>

#include "models/base/input_error.hpp"
#include "sim/launch/launch_files.hpp"
#include "sim/launch/primus_file.hpp"
#include "sim/launch/settle_job.hpp"

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

/// Takes keys by the rows of their tables, and notes what became of each.
class KeyReader {
 public:
  KeyReader(const LaunchFiles& files, SketchedJob& sketched) : files_(files), out_(sketched) {}

  /// A key is looked for in the first tables, then in the second.
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
           has_part(files_, LaunchKind::deepspeed);
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

  const LaunchFiles& files_;
  SketchedJob& out_;
};

}  // namespace

SketchedJob sketch_job(const LaunchFiles& files) {
  SketchedJob out;
  KeyReader keys(files, out);
  for (const LaunchPart& part : files.parts) {
    if (part.kind == LaunchKind::model) {
      out.job.model.config = part.file;
      continue;
    }
    const Tables tables = tables_of(part.kind);
    const Tables launcher{launcher_keys(), primus_keys()};
    for (const Setting& one : part.launcher) keys.add(part.kind, one, launcher, tables);
    for (const Setting& one : part.settings) keys.add(part.kind, one, tables, launcher);
  }
  settle_framework(files, out);
  settle_job(files, out);
  std::ranges::sort(out.open);
  const auto twice = std::ranges::unique(out.open);
  out.open.erase(twice.begin(), twice.end());
  return out;
}

}  // namespace lockstep
