/// What a person sets beside the launch files: "NAME=VALUE" of `--set`.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "sim/launch/launch_files.hpp"
#include "sim/launch/shell_variables.hpp"

namespace lockstep {

/// Whether `name` stands in the text as a word of its own.
bool mentions(std::string_view text, std::string_view name);

/// Gives variables and keys the values that `--set` has for them.
class LaunchChanges {
 public:
  /// `files`: with the texts of all of them. What is a path of the scenario, and no word of theirs,
  /// goes to its `scenario`. Throws InputError for what has no name or no "=".
  LaunchChanges(const std::vector<std::string>& set, LaunchFiles& files);

  /// Launchers fill "${TP}" in their YAML from the environment; here --set does.
  std::vector<Setting> filled(std::vector<Setting> settings);
  /// Gives the variables that a text speaks of the values of `--set`.
  void fix(const std::string& text, ShellVariables& variables);
  /// Values of keys; one that no file has becomes a setting of the last of them. To be called when
  /// all are read.
  void apply();

 private:
  struct Change {
    std::string name, value;
    bool used = false;
  };
  [[nodiscard]] bool has_key(const std::string& name) const;
  /// Sections of files have names that a scenario's have too ([parallelism] of TorchTitan): what a
  /// file says under them is its own key.
  void take_keys_of_sections();

  LaunchFiles& files_;
  std::vector<Change> changes_;
  std::set<std::string> variables_used_;
};

}  // namespace lockstep
