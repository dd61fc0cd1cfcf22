/// Files that a script names and that are not among those given: read where they stand beside it.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "sim/launch/launch_changes.hpp"
#include "sim/launch/launch_files.hpp"
#include "sim/launch/shell_variables.hpp"

namespace lockstep {

inline constexpr std::size_t kMostLaunchBytes = std::size_t{4} << 20;  ///< of a file

/// Adds what it reads to the parts and the texts; a remark says so, or that a file is missing.
class NamedFiles {
 public:
  NamedFiles(LaunchFiles& files, LaunchChanges& changes) : files_(files), changes_(changes) {}

  /// What a script sources, where it stands beside it; else a remark says that it is unknown.
  std::optional<std::string> sourced_text(const std::string& script, const std::string& path,
                                          ShellVariables& variables);
  /// YAML that a command names, "configs/1-3B.yml" or "--config llama3_1/8B_lora": read where it
  /// stands beside the script, else a remark.
  void add_named_configs(const std::string& script, LaunchKind kind,
                         const std::vector<Setting>& arguments, std::vector<std::string> paths);
  /// The file that an option names ("accelerate launch --config_file fsdp.yaml"), where it stands
  /// beside the script and is not among those given. What is not there, its row tells.
  void add_launched_config(const std::string& script, LaunchKind kind, std::string_view option,
                           const std::vector<Setting>& settings);
  /// The file of settings that a MaxText command names: one of those given, one beside the script,
  /// or MaxText's own base.yml, whose values hold where the command says nothing else.
  void add_maxtext_config(const std::string& script, const std::string& path,
                          const std::vector<Setting>& arguments);
  /// What a command of torchtune says, null too, or takes away ("~compile") its files say no more
  /// (meta-pytorch/torchtune, torchtune/config/_utils.py, _merge_yaml_and_cli_args).
  void leave_to_tune(const std::vector<Setting>& arguments);

 private:
  LaunchFiles& files_;
  LaunchChanges& changes_;
  std::set<std::string> sourced_;  ///< files that scripts source, each read once
};

}  // namespace lockstep
