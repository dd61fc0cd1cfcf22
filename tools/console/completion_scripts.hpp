/// Completion for shells, made from the tables of the commands: a new command or option is
/// completed by being there.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tools/console/console.hpp"

namespace lockstep {

/// What may follow an option, or stand at a place of the command line.
struct CompletedValues {
  enum class Kind : unsigned char {
    nothing,  ///< of which the shell knows
    words,    ///< `words`
    files,
    folders,
    names,  ///< what `lockstep list WORDS` prints: "gpus"; "scenarios plan" are those of that
            ///< command
    names_or_files,
    keys,  ///< of scenarios, by `lockstep list keys`, with `words` behind them: "=" or nothing
  };
  Kind kind = Kind::nothing;
  std::string words;  ///< with spaces between
  bool list = false;  ///< several of them, with commas between
};
/// By the argument that the option says it takes: "table|json|csv", "FILE", "DIR", "PATH=VALUE",
/// and by its own name where it names presets.
CompletedValues values_of(const OptionSpec& option);
/// What stands at each place beside the options, from the usage: "export job FILE|NAME [options]"
/// has a word and a scenario, which ships or is a file. Ways that " | " or ", or " separates are
/// joined.
std::vector<CompletedValues> places_of(const CommandSpec& command);

/// A script with awk programs in place of its NEXT_KEY_PARTS and NAMES_OF. The former reads the CSV
/// of `lockstep list keys` and prints each key up to the part that `typed` ends in. A "." follows
/// where the key has more parts, else what `last` says. A list's "*" is the number that was typed,
/// or 0. The latter prints names, of scenarios those that the command `of` takes.
std::string with_awk_programs(std::string_view script);

std::string bash_completion(std::span<const Command* const> commands);
std::string zsh_completion(std::span<const Command* const> commands);
std::string fish_completion(std::span<const Command* const> commands);

}  // namespace lockstep
