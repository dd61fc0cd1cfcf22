#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <ostream>

#include "models/base/input_error.hpp"
#include "tools/console/manual_page.hpp"
#include "tools/console/shared_options.hpp"
#include "tools/lockstep/cli.hpp"

namespace lockstep {
namespace {

constexpr std::array kManualOptions{kOutputOption};

constexpr std::array<std::string_view, 2> kManualExamples{"lockstep manual run | man -l -",
                                                          "lockstep manual -o lockstep.1"};

constexpr CommandSpec kManualSpec{
    .name = "manual",
    .usage = "manual [COMMAND] [options]",
    .summary = "Print the manual page of the program or of a command, as man reads it.",
    .about =
        "What --help says, for man(1). An installed program brings all of them: man lockstep,\n"
        "man lockstep-run.",
    .positionals = 1,
    .options = kManualOptions,
    .examples = kManualExamples,
};

Exit run_manual(const ParsedOptions& options, Console& console) {
  const std::vector<const Command*> all = commands();
  if (options.positionals.empty()) {
    write_output(Answer::file(program_manual(all)), options, console);
    return Exit::ok;
  }
  const std::string& name = options.positionals.front();
  std::vector<std::string> names;
  for (const Command* command : all) {
    names.emplace_back(command->spec->name);
    if (name != command->spec->name) continue;
    write_output(Answer::file(command_manual(*command->spec)), options, console);
    return Exit::ok;
  }
  throw UsageError(fmt::format("lockstep manual: found {}; allowed: {}{}", in_quotes(name),
                               fmt::join(names, ", "), did_you_mean(name, names)));
}

constexpr Command kManualCommand{&kManualSpec, run_manual};

}  // namespace

const Command& manual_command() { return kManualCommand; }

}  // namespace lockstep
