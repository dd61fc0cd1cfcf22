#include "tools/lockstep/cli.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <ostream>

#include "models/input/input_error.hpp"
#include "sim/core/clock.hpp"

namespace lockstep {

// clang-format off: one a line, so that commands come and go without moving others
std::vector<const Command*> commands() {
  return {
      &run_command(),
      &sweep_command(),
      &plan_command(),
      &tune_command(),
      &compare_command(),
      &comm_command(),
      &replay_command(),
      &topology_command(),
      &validate_command(),
      &referee_command(),
      &fit_command(),
      &fit_kernels_command(),
      &import_command(),
      &list_command(),
      &show_command(),
      &completion_command(),
  };
}
// clang-format on

namespace {

std::string general_help() {
  std::string out =
      "lockstep predicts what a GPU cluster does with a training job: step time, MFU, memory, and\n"
      "where the rest of the time goes.\n\n"
      "Usage: lockstep COMMAND [options]\n\nCommands:\n";
  for (const Command* command : commands()) {
    out += fmt::format("  {:<13}{}\n", command->spec->name, command->spec->summary);
  }
  out +=
      "\nOptions:\n"
      "  -h, --help      Print this text; after a command, that command's options.\n"
      "                  Example: lockstep run --help\n"
      "  --version       Print the version.\n"
      "                  Example: lockstep --version\n"
      "\nExamples:\n";
  for (const Command* command : commands()) {
    out += fmt::format("  {}\n", command->spec->examples.front());
  }
  out +=
      "\nWhere a file is read, - is standard input and a pipe will do.\n"
      "Exit status: 0 success, 1 an --assert was missed, 2 bad input, 3 an error of the\n"
      "program, 130 interrupted by Ctrl-C.\n";
  return out;
}

Exit dispatch(const std::vector<std::string>& args, Console& console) {
  if (args.empty()) throw UsageError("lockstep: no command; `lockstep --help` lists them");
  const std::string& name = args.front();
  if (name == "--help" || name == "-h" || name == "help") {
    console.out << general_help();
    return Exit::ok;
  }
  if (name == "--version") {
    console.out << "lockstep " LOCKSTEP_VERSION "\n";
    return Exit::ok;
  }
  std::vector<std::string> names;
  for (const Command* command : commands()) {
    names.emplace_back(command->spec->name);
    if (name != command->spec->name) continue;
    const ParsedOptions options =
        parse_options(*command->spec, std::vector<std::string>(args.begin() + 1, args.end()));
    if (!options.has("help")) return command->run(options, console);
    console.out << help_text(*command->spec);
    return Exit::ok;
  }
  throw UsageError(fmt::format("lockstep: unknown command {}; allowed: {}{}", in_quotes(name),
                               fmt::join(names, ", "), did_you_mean(name, names)));
}

}  // namespace

Exit run_cli(const std::vector<std::string>& args, Console& console) {
  try {
    const Exit status = dispatch(args, console);
    console.out.flush();
    if (!console.out) {
      console.err << "lockstep: the output could not be written\n";
      return Exit::bad_input;
    }
    return status;
  } catch (const InputError& e) {
    console.err << e.what() << "\n";
    return Exit::bad_input;
  } catch (const UsageError& e) {
    console.err << e.what() << "\n";
    return Exit::bad_input;
  } catch (const ClockOverflow& e) {
    console.err << "lockstep: " << e.what() << "; allowed: a smaller batch, or faster links\n";
    return Exit::bad_input;
  } catch (const std::exception& e) {
    console.err << "lockstep: an error of the program itself, please report it: " << e.what()
                << "\n";
    return Exit::internal_error;
  }
}

}  // namespace lockstep
