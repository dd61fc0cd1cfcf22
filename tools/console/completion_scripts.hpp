/// Completion for shells, made from the tables of the commands: a new command or option is
/// completed by being there.
#pragma once

#include <span>
#include <string>

#include "tools/console/console.hpp"

namespace lockstep {

/// What may follow an option, or stand at a place of the command line.
struct CompletedValues {
  enum class Kind : unsigned char {
    nothing,  ///< of which the shell knows
    words,    ///< `words`
    files,
    folders,
    names,  ///< what `lockstep list WORDS` prints
    names_or_files,
  };
  Kind kind = Kind::nothing;
  std::string words;  ///< with spaces between
};
/// By the argument that the option says it takes: "table|json|csv", "FILE", "DIR", and by its own
/// name where it names presets.
CompletedValues values_of(const OptionSpec& option);
/// The words that may come first, from the usage: "list gpus|nodes [options]"; else files.
CompletedValues first_word_of(const CommandSpec& command);

std::string bash_completion(std::span<const Command* const> commands);
std::string zsh_completion(std::span<const Command* const> commands);
std::string fish_completion(std::span<const Command* const> commands);

}  // namespace lockstep
