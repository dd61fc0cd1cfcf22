/// What a command is given, and what it returns.
#pragma once

#include <iosfwd>

#include "tools/console/options.hpp"
#include "tools/console/table.hpp"

namespace lockstep {

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
};

/// A command: its options and what it does. Throws InputError or UsageError.
struct Command {
  const CommandSpec* spec;
  Exit (*run)(const ParsedOptions& options, Console& console);
};

}  // namespace lockstep
