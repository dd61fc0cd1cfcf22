/// What a command is given, and what it returns.
#pragma once

#include <iosfwd>
#include <string>

#include "tools/console/options.hpp"
#include "tools/console/table.hpp"

namespace lockstep {

class PresetStore;  // sim/scenario/preset_store.hpp

/// Exit statuses of every command.
enum class Exit : int {
  ok = 0,
  assertion_missed = 1,
  bad_input = 2,       ///< the scenario, a file or the command line
  internal_error = 3,  ///< ours
  interrupted = 130,   ///< by Ctrl-C; what was done until then is printed
};

/// Where a command writes, and what that place can show.
struct Console {
  std::ostream& out;
  std::ostream& err;
  TextStyle style;               ///< of `out`
  bool err_is_terminal = false;  ///< progress is drawn only there
  bool err_is_log = false;       ///< long work says now and then that it goes on, a line each time
};

/// What a command reads beside its options: a scenario, a plan, measured steps.
struct CommandInput {
  std::string file;  ///< how messages call it; paths in the text start from its folder
  std::string text;
};

/// A command: its options and what it does. Throws InputError or UsageError.
struct Command {
  const CommandSpec* spec;
  Exit (*run)(const ParsedOptions& options, Console& console);
  /// Of a command that answers one text, in two steps: reads what a word of the command line
  /// names, and answers it. Programs that hold the text already, or presets, begin with the second.
  /// Null of other commands.
  CommandInput (*read)(const std::string& written, const PresetStore& presets) = nullptr;
  Exit (*answer)(const CommandInput& input, const PresetStore& presets,
                 const ParsedOptions& options, Console& console) = nullptr;
};

}  // namespace lockstep
