#include "tools/lockstep/cli.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <ostream>
#include <string_view>
#include <system_error>

#include <nlohmann/json.hpp>

#include "tools/console/progress.hpp"
#include "tools/console/shared_options.hpp"
#include "tools/views/tables/listing.hpp"

namespace lockstep {

// clang-format off: one a line, so that commands come and go without moving others
std::vector<const Command*> commands() {
  return {
      &run_command(),
      &new_command(),
      &sweep_command(),
      &plan_command(),
      &tune_command(),
      &explain_command(),
      &compare_command(),
      &explore_command(),
      &check_command(),
      &comm_command(),
      &queue_command(),
      &replay_command(),
      &diagnose_command(),
      &topology_command(),
      &validate_command(),
      &referee_command(),
      &learn_command(),
      &fit_command(),
      &fit_kernels_command(),
      &import_command(),
      &export_command(),
      &list_command(),
      &show_command(),
      &completion_command(),
      &manual_command(),
  };
}
// clang-format on

namespace {

/// What people ask first, each with the command that answers it.
struct FirstQuestion {
  std::string_view question, command;
};
constexpr std::array kFirstQuestions{
    FirstQuestion{"How fast does this model train on these machines?",
                  "lockstep run --model llama3_70b --node dgx_h100 --nodes 64"},
    FirstQuestion{"H100 or B200?",
                  "lockstep run --model llama3_70b --node dgx_h100 --nodes 64 --vary "
                  "cluster.node=dgx_h100,dgx_b200"},
    FirstQuestion{"What would make this job faster?", "lockstep run llama3-405b-16k --advise"},
    FirstQuestion{"Is a thinner fabric enough?",
                  "lockstep run qwen3-30b-experts-8-nodes --explain-fabric"},
    FirstQuestion{"What do failures and checkpoints cost?", "lockstep run llama3-405b-54days"},
    FirstQuestion{"Which cluster, how long, for how much money?",
                  "lockstep plan train-70b-15t-tokens"},
    FirstQuestion{"How many megawatts does it draw?",
                  "lockstep run --model llama3_70b --node dgx_h100 --nodes 64 --set power={}"},
};

std::string general_help() {
  std::string out =
      "lockstep predicts what a GPU cluster does with a training job: step time, MFU, memory, and\n"
      "where the rest of the time goes.\n\n"
      "Usage: lockstep COMMAND [options]\n\n";
  for (const FirstQuestion& each : kFirstQuestions)
    out += fmt::format("  {}\n    {}\n", each.question, each.command);
  out += "\nCommands:\n";
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
      "program, 130 interrupted by Ctrl-C. With --format json, an error is JSON too: {\"error\":\n"
      "{\"place\", \"found\", \"allowed\", \"nearest\", \"message\"}}.\n";
  return out;
}

/// "lockstep run help", unless there is such a file.
bool asks_for_help(const std::vector<std::string>& args) {
  std::error_code ignored;
  return args.size() == 2 && args[1] == "help" && !std::filesystem::exists("help", ignored);
}

/// A server goes on until it is stopped: that is nothing to be told.
Beats beats_of(std::string_view command, const ParsedOptions& options, const Console& console) {
  if (console.err_is_terminal) return Beats::redrawn;
  const bool told = console.err_is_log && command != "explore" && !options.has("quiet");
  return told ? Beats::lines : Beats::none;
}

Exit dispatch(const std::vector<std::string>& args, Console& console) {
  if (args.empty()) {
    console.out << general_help();
    return Exit::bad_input;
  }
  const std::string& name = args.front();
  if (name == "--help" || name == "-h" || name == "help") {
    if (args.size() > 1 && !args[1].starts_with('-')) return dispatch({args[1], "--help"}, console);
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
    if (asks_for_help(args)) return dispatch({name, "--help"}, console);
    const ParsedOptions options =
        parse_options(*command->spec, std::vector<std::string>(args.begin() + 1, args.end()));
    if (!options.has("help")) {
      check_written_files(*command->spec, options);
      const Heartbeat heartbeat(console.err, "lockstep " + name, beats_of(name, options, console));
      return command->run(options, console);
    }
    console.out << help_text(*command->spec);
    return Exit::ok;
  }
  // "lockstep keys": what is listed is not a command of its own.
  const bool listed = std::ranges::count(list_kinds(), name, &ListKind::plural) > 0;
  const std::string nearest = listed ? "list " + name : nearest_name(name, names);
  throw UsageError(
      fmt::format("lockstep: unknown command {}; allowed: {}{}", in_quotes(name),
                  fmt::join(names, ", "), nearest.empty() ? "" : ". Did you mean " + nearest + "?"),
      {.found = in_quotes(name),
       .allowed = fmt::format("{}", fmt::join(names, ", ")),
       .nearest = nearest});
}

/// Whether the command line asks for JSON; it may be one that no command takes.
bool wants_json(const std::vector<std::string>& args) {
  for (std::size_t i = 0; i < args.size(); ++i) {
    if (args[i] == "--format=json") return true;
    if (args[i] == "--format" && i + 1 < args.size() && args[i + 1] == "json") return true;
  }
  return false;
}

/// The error as a line for people, and as an answer for a program that asked for JSON.
Exit report_failure(const std::vector<std::string>& args, Console& console,
                    const Failure& failure) {
  console.err << terminal_text(failure.line) << "\n";
  if (!wants_json(args)) return failure.status;
  console.out << JsonText(failure_json(failure)).str() << std::flush;
  return failure.status;
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
  } catch (const std::exception&) {
    return report_failure(args, console, current_failure());
  }
}

}  // namespace lockstep
