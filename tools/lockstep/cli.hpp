/// The command line as a function: words in, text and exit status out. main() only calls it.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "tools/lockstep/options.hpp"
#include "tools/lockstep/table.hpp"

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

const Command& run_command();
const Command& sweep_command();
const Command& plan_command();
const Command& tune_command();
const Command& compare_command();
const Command& comm_command();
const Command& validate_command();
const Command& referee_command();
const Command& fit_command();
const Command& fit_kernels_command();
const Command& import_command();
const Command& list_command();
const Command& show_command();
const Command& completion_command();
const Command& topology_command();
const Command& replay_command();

/// All of them, in the order of the help text.
std::vector<const Command*> commands();

/// Runs `lockstep ARGS...`.
Exit run_cli(const std::vector<std::string>& args, Console& console);

}  // namespace lockstep
