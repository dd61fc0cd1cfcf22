#include "sim/launch/named_files.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fmt/format.h>
#include <span>
#include <system_error>
#include <utility>

#include "models/base/text_file.hpp"
#include "sim/launch/tree_text.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

/// The path of a file that a script names, from the script's folder: "env.sh", "./conf/env.sh", and
/// with what stands for that folder, "$(dirname $0)/env.sh", "${BASH_SOURCE%/*}/env.sh". Empty: no
/// such file is there, or the path leaves the folder.
std::string file_beside(const std::string& script, const std::string& path) {
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

/// What MaxText's base.yml says of a step (AI-Hypercomputer/maxtext, MaxText/configs/base.yml).
std::vector<Setting> own_base(const std::string& path) {
  return {{"per_device_batch_size", {"12.0"}, path},
          {"max_target_length", {"2048"}, path},
          {"remat_policy", {"full"}, path},
          {"dtype", {"bfloat16"}, path}};
}

/// The command goes before the file that it names; where it names a model, that model's sizes go
/// before those of the file (MaxText/pyconfig.py, update_model_vars).
void leave_to_command(std::vector<Setting>& settings, const std::vector<Setting>& arguments) {
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

}  // namespace

std::optional<std::string> NamedFiles::sourced_text(const std::string& script,
                                                    const std::string& path,
                                                    ShellVariables& variables) {
  const std::string name = fs::path(path).filename().string();
  constexpr std::array<std::string_view, 5> kShellsOwn{"activate", "conda.sh", ".bashrc",
                                                       ".bash_profile", "profile"};
  if (std::ranges::find(kShellsOwn, std::string_view(name)) != kShellsOwn.end()) return {};
  const std::string file = file_beside(script, path);
  if (!file.empty() && sourced_.contains(file)) return {};
  const std::string own = fs::path(script).filename().string();
  std::string text = file.empty() ? std::string() : read_text_file(file, kMostLaunchBytes);
  if (file.empty() || text.find('\0') != std::string::npos) {
    files_.remarks.push_back(
        fmt::format("{} is sourced and not beside {}: its variables are unknown (--set NAME=VALUE)",
                    path, own));
    return {};
  }
  sourced_.insert(file);
  files_.remarks.push_back(fmt::format("{}: read, as {} sources it", name, own));
  files_.texts += text + "\n";
  changes_.fix(text, variables);
  return text;
}

void NamedFiles::add_named_configs(const std::string& script, LaunchKind kind,
                                   const std::vector<Setting>& arguments,
                                   std::vector<std::string> paths) {
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
    const bool given = std::ranges::any_of(files_.parts, [&](const LaunchPart& part) {
      return part.kind == kind && fs::path(part.file).filename() == name;
    });
    if (given) continue;
    const std::string beside = file_beside(script, path);
    if (beside.empty()) {
      files_.remarks.push_back(
          fmt::format("{}: not given, and its keys count: give it before the script", path));
      continue;
    }
    files_.parts.push_back(
        {beside, kind, {}, read_yaml_settings(beside, read_text_file(beside, kMostLaunchBytes))});
    files_.remarks.push_back(
        fmt::format("{}: read, as {} names it", name, fs::path(script).filename().string()));
  }
}

void NamedFiles::add_launched_config(const std::string& script, LaunchKind kind,
                                     std::string_view option,
                                     const std::vector<Setting>& settings) {
  for (const Setting& one : settings) {
    if (plain_key(one.key) != option || one.values.empty()) continue;
    const std::string name = fs::path(one.values.front()).filename().string();
    const auto last = std::ranges::find_if(
        files_.parts, [&](const LaunchPart& part) { return part.kind == kind; });
    if (last != files_.parts.end()) continue;
    const std::string beside = file_beside(script, one.values.front());
    if (beside.empty()) continue;
    const std::string text = read_text_file(beside, kMostLaunchBytes);
    files_.texts += text + "\n";
    files_.parts.push_back({beside,
                            kind,
                            {},
                            kind == LaunchKind::accelerate
                                ? changes_.filled(read_yaml_settings(beside, text))
                                : read_toml_settings(beside, text)});
    files_.remarks.push_back(
        fmt::format("{}: read, as {} names it", name, fs::path(script).filename().string()));
  }
}

void NamedFiles::add_maxtext_config(const std::string& script, const std::string& path,
                                    const std::vector<Setting>& arguments) {
  const std::string name = fs::path(path).filename().string();
  const auto is_it = [&](const LaunchPart& part) {
    return part.kind == LaunchKind::maxtext && fs::path(part.file).filename() == name;
  };
  auto given = std::ranges::find_if(files_.parts, is_it);
  const std::string own = fs::path(script).filename().string();
  const std::string beside = file_beside(script, path);
  if (given == files_.parts.end() && (!beside.empty() || name == "base.yml")) {
    std::vector<Setting> settings =
        beside.empty() ? own_base(path)
                       : read_yaml_settings(beside, read_text_file(beside, kMostLaunchBytes));
    files_.remarks.push_back(
        beside.empty()
            ? fmt::format("{}: not given; batch, length and remat_policy as MaxText's base.yml of "
                          "2024 has them, where the command leaves them out",
                          path)
            : fmt::format("{}: read, as {} names it", name, own));
    files_.parts.push_back({beside.empty() ? path : beside, LaunchKind::maxtext, {}, settings});
    given = files_.parts.end() - 1;
  }
  if (given == files_.parts.end()) {
    files_.remarks.push_back(fmt::format("{}: not given, and its keys count: give it too", path));
    return;
  }
  leave_to_command(given->settings, arguments);
}

void NamedFiles::leave_to_tune(const std::vector<Setting>& arguments) {
  for (LaunchPart& part : files_.parts) {
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

}  // namespace lockstep
