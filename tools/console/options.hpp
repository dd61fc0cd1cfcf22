/// Options of a command: one table from which parsing, --help and "did you mean" are all made.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/usage_error.hpp"

namespace lockstep {

/// What is done with the path that an option names.
enum class PathUse : std::uint8_t {
  none,           ///< it names none
  reads,          ///< a file or a folder that is there
  prints,         ///< where the answer goes: a file, or "-" for the console
  writes,         ///< a file beside the answer
  writes_folder,  ///< a folder of files, which is made where there is none
};

struct OptionSpec {
  std::string_view name;      ///< long name without dashes
  char letter = 0;            ///< one-letter form; 0: none
  std::string_view argument;  ///< "FILE"; empty: a flag
  bool repeatable = false;
  std::string_view text;     ///< what it does, a sentence or two
  std::string_view example;  ///< the option as one would type it
  PathUse path = PathUse::none;
};

/// A word that people type where a command has another way to say it.
struct WordHint {
  std::string_view option;   ///< "--power-cap"
  std::string_view instead;  ///< as one would type it
};

struct CommandSpec {
  std::string_view name;
  std::string_view usage;    ///< "run FILE [options]"
  std::string_view summary;  ///< one line for `lockstep --help`
  std::string_view about;    ///< paragraphs for `lockstep COMMAND --help`
  std::size_t positionals;   ///< at most this many words beside the options
  std::span<const OptionSpec> options;
  std::span<const std::string_view> examples;  ///< whole command lines
  std::string_view program = "lockstep ";      ///< what is typed before `name` and `usage`
  std::span<const WordHint> hints = {};        ///< for options that it does not have
};

/// What was given.
class ParsedOptions {
 public:
  std::vector<std::string> positionals;
  std::map<std::string, std::vector<std::string>, std::less<>> values;  ///< flags hold ""

  [[nodiscard]] bool has(std::string_view name) const { return values.contains(name); }
  /// The last value given, or `otherwise`.
  [[nodiscard]] std::string get(std::string_view name, std::string_view otherwise = {}) const;
  /// The last value given, if any was.
  [[nodiscard]] std::optional<std::string> given(std::string_view name) const;
  [[nodiscard]] std::vector<std::string> all(std::string_view name) const;
  /// One of `allowed` (the first is the default). Throws UsageError with the nearest name.
  [[nodiscard]] std::string choice(std::string_view name,
                                   std::span<const std::string_view> allowed) const;
};

/// Parses the words after the command's name. Throws UsageError for unknown options (with the
/// nearest one), options without their argument, flags with one, and too many words.
ParsedOptions parse_options(const CommandSpec& command, const std::vector<std::string>& args);

/// The text of `lockstep COMMAND --help`, at most 100 columns wide.
std::string help_text(const CommandSpec& command);

}  // namespace lockstep
