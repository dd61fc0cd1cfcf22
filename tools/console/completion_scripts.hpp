/// Completion for shells, made from the tables of the commands: a new command or option is
/// completed by being there.
#pragma once

#include <span>
#include <string>
#include <string_view>

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
    keys,  ///< of scenarios, by `lockstep list keys`, with `words` behind them: "=" or nothing
  };
  Kind kind = Kind::nothing;
  std::string words;  ///< with spaces between
};
/// By the argument that the option says it takes: "table|json|csv", "FILE", "DIR", "PATH=VALUE",
/// and by its own name where it names presets.
CompletedValues values_of(const OptionSpec& option);
/// The words that may come first, from the usage: "list gpus|nodes [options]"; else files.
CompletedValues first_word_of(const CommandSpec& command);

/// A script with an awk program in place of its NEXT_KEY_PARTS. It reads the CSV of `lockstep list
/// keys` and prints each key up to the part that `typed` ends in. A "." follows where the key has
/// more parts, else what `last` says. A list's "*" is the number that was typed, or 0.
std::string with_next_key_parts(std::string_view script);

std::string bash_completion(std::span<const Command* const> commands);
std::string zsh_completion(std::span<const Command* const> commands);
std::string fish_completion(std::span<const Command* const> commands);

}  // namespace lockstep
