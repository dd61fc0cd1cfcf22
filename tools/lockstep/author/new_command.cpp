#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <string>
#include <system_error>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "tools/author/new_scenario.hpp"
#include "tools/author/questions.hpp"
#include "tools/author/wish.hpp"
#include "tools/console/ask_options.hpp"
#include "tools/console/shared_options.hpp"
#include "tools/lockstep/cli.hpp"

namespace lockstep {
namespace {

constexpr int kMostNewNodes = 100'000;

constexpr std::array kNewOptions{
    OptionSpec{"model", 0, "NAME|FILE", false,
               "The model: a preset (lockstep list models) or a Hugging Face config.json (default: "
               "llama3_8b).",
               "--model llama3_70b"},
    OptionSpec{"node", 0, "NAME", false, "The server (lockstep list nodes; default: dgx_h100).",
               "--node dgx_b200"},
    OptionSpec{"nodes", 0, "N", false, "How many servers (default: 4).", "--nodes 16"},
    OptionSpec{
        "scenario", 0, "FILE", false,
        "Of a sweep: the scenario whose values are varied, from this folder or the new file's.",
        "--scenario my.json", PathUse::reads},
    kPresetsOption,
    kOutputOption,
};

constexpr std::array<std::string_view, 4> kNewExamples{
    "lockstep new weeks -o my-weeks.json",
    "lockstep new step --model llama3_70b --node dgx_h100 --nodes 16 -o my.json",
    "lockstep new sweep --scenario my.json -o my-sweep.json",
    "lockstep new serving --model llama3_8b --node dgx_h100 --nodes 2 -o my-chat.json"};

constexpr CommandSpec kNewSpec{
    .name = "new",
    .usage = "new step|weeks|jobs|serving|queue|rl|plan|sweep [options]",
    .summary = "Write a scenario to begin with: complete, with a comment at each choice.",
    .about =
        "The file runs as it is. On a terminal what no option says is asked; elsewhere it has\n"
        "its default. A layout is searched where one is needed. A file that is there already is\n"
        "not replaced.",
    .positionals = 1,
    .options = kNewOptions,
    .examples = kNewExamples,
};

const NewKind& kind_named(const std::string& name) {
  std::vector<std::string> names;
  for (const NewKind& kind : new_kinds()) {
    if (kind.name == name) return kind;
    names.emplace_back(kind.name);
  }
  throw UsageError(fmt::format("lockstep new: found {}; allowed: {}{}",
                               name.empty() ? std::string("no kind") : in_quotes(name),
                               fmt::join(names, ", "), did_you_mean(name, names)));
}

Exit run_new(const ParsedOptions& options, Console& console) {
  const PresetStore presets(options.all("presets"));
  std::string kind = options.positionals.empty() ? "" : options.positionals.front();
  if (!kind.empty()) (void)kind_named(kind);
  NewWish wish;
  if (options.has("model")) wish.model = model_option(options);
  wish.node = options.get("node", wish.node);
  wish.nodes = whole_number(options, "nodes", wish.nodes, kMostNewNodes);
  wish.scenario = options.get("scenario");
  wish.file = options.get("output");
  refuse_existing(wish.file);
  if (console.err_is_terminal && ::isatty(STDIN_FILENO) == 1) {
    ask_for_rest(options, presets, kind, wish);
  }
  const NewKind& chosen = kind_named(kind);
  if ((chosen.name == "sweep") != options.has("scenario")) {
    throw UsageError(chosen.name == "sweep"
                         ? "lockstep new sweep: --scenario is missing; allowed: the file whose "
                           "values are varied"
                         : fmt::format("--scenario: found {} beside {}; allowed: for a sweep",
                                       in_quotes(wish.scenario), chosen.name));
  }
  if (chosen.name == "sweep") wish.scenario = varied_scenario(wish, presets);
  if (presets.meant("nodes", wish.node).empty()) {
    throw UsageError(fmt::format("--node: found {}; allowed: a name of lockstep list nodes{}",
                                 in_quotes(wish.node),
                                 did_you_mean(wish.node, presets.names("nodes"))));
  }
  write_output(Answer::file(new_scenario_text(chosen, wish, presets)), options, console);
  return Exit::ok;
}

constexpr Command kNewCommand{&kNewSpec, run_new};

}  // namespace

const Command& new_command() { return kNewCommand; }

}  // namespace lockstep
