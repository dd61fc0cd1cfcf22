/// The options of a command, key by key.
#pragma once

#include <string>
#include <vector>

#include "sim/launch/setting.hpp"
#include "sim/launch/shell_script.hpp"

namespace lockstep {

struct CommandWords {
  std::vector<Setting> launcher;   ///< of torchrun, srun and their like: before the program's name
  std::vector<Setting> arguments;  ///< of the program
  std::string program;             ///< "pretrain_gpt.py", "torchtitan.train"
  std::vector<std::string> files;  ///< YAML that stands behind the program's name: MaxText's
  std::vector<std::string> runners;  ///< words before it: "torchrun", "accelerate"
};

/// Whether a word is the name of an option.
bool is_option(std::string_view word);

/// "--key value value", "--key=value", "-k value" and "key=value" as settings. Other words before
/// the first option are left out.
std::vector<Setting> settings_of(const std::vector<std::string>& words, const std::string& file);

/// The command of a script that starts a training: the one with the most options. Where none has
/// any, the options that variables of the script hold.
CommandWords training_command(const ShellScript& script, const ShellVariables& variables,
                              const std::string& file);

}  // namespace lockstep
