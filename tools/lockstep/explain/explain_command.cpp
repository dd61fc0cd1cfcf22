#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <fmt/format.h>
#include <vector>

#include "models/base/input_error.hpp"
#include "models/base/json_cursor.hpp"
#include "models/base/text_file.hpp"
#include "sim/measured/explanation.hpp"
#include "sim/measured/row_document.hpp"
#include "sim/scenario/scenario_file.hpp"
#include "sim/scenario/shipped_scenarios.hpp"
#include "sim/search/sweep/explained_point.hpp"
#include "tools/console/shared_options.hpp"
#include "tools/lockstep/cli.hpp"
#include "tools/lockstep/explain/explained_document.hpp"
#include "tools/views/explain/explanation_table.hpp"

namespace lockstep {
namespace {

constexpr std::array<std::string_view, 2> kExplainFormats{"table", "json"};

constexpr std::array kExplainOptions{
    OptionSpec{"set", 0, "PATH=VALUE", true,
               "Change a value of the scenario before it is read, as lockstep run does.",
               "--set cluster.nodes=64"},
    OptionSpec{"format", 0, "table|json", false,
               "How to print: a table for people (the default), or JSON.", "--format json"},
    OptionSpec{"allow-oom", 0, "", false,
               "Of weeks, reinforcement learning, several jobs or a queue: also of a job that does "
               "not fit in memory, as lockstep run predicts it. A step's answer says it anyway.",
               "--allow-oom"},
    OptionSpec{"node", 0, "NAME", false,
               "Of a trace, as lockstep replay takes it: the node preset to replay it on.",
               "--node dgx_h100"},
    OptionSpec{"nodes", 0, "N", false, "Of a trace: how many; else as many as the ranks need.",
               "--nodes 128"},
    OptionSpec{"fabric", 0, "NAME", false, "Of a trace: the fabric preset between them.",
               "--fabric fat_tree_2_to_1"},
    OptionSpec{"cluster", 0, "FILE", false, "Of a trace: take the cluster from this scenario.",
               "--cluster llama3-405b-16k", PathUse::reads},
    OptionSpec{"step", 0, "N|all", false, "Of a profiler's trace: the step that is replayed.",
               "--step 16"},
    OptionSpec{"recorded-on", 0, "GPU", false,
               "Of a trace: the GPU preset that it was recorded on, from which kernels are scaled.",
               "--recorded-on a100_sxm4_80gb"},
    OptionSpec{"point", 0, "N", false,
               "Of a sweep: the point, by its number in the results (their column point).",
               "--point 12"},
    kStackOption,
    kPresetsOption,
    kOutputOption};

constexpr std::array<std::string_view, 7> kExplainExamples{
    "lockstep explain llama3-405b-16k mfu",
    "lockstep explain my.json price_usd --format json",
    "lockstep explain llama3-405b-54days goodput",
    "lockstep explain llama3-405b-16k stages.0.memory.weights_gib",
    "lockstep explain llama3-70b-h100-chat ttft_s.p99",
    "lockstep explain traces/ mean_waiting_s --node dgx_h100",
    "lockstep explain fabric-vs-parallelism mfu --point 12"};

constexpr CommandSpec kExplainSpec{
    .name = "explain",
    .usage = "explain FILE|NAME|TRACE|SWEEP FIELD [options]",
    .summary = "Open a number of an answer: formula, inputs with sources, nearest measured runs.",
    .about =
        "Answers the scenario as lockstep run does (collectives and traffic as comm, a plan as "
        "plan; a\n"
        "trace, a folder or a file beside --node or --cluster, as replay; a point of a sweep, "
        "with\n"
        "--point, as run does its scenario), and shows of one number of the answer how it comes\n"
        "about: its formula, what goes in and where each value is from, the assumptions, the\n"
        "interval, and published runs or services nearest to it, predicted and measured. A dotted\n"
        "path names a number below the first level, with an element's name or index. Of a sweep,\n"
        "columns of its table are opened too. Both ends of a comparison, and what --vary, "
        "--advise\n"
        "and sliders show, are answers to changed scenarios: --set changes them here too.",
    .positionals = 2,
    .options = kExplainOptions,
    .examples = kExplainExamples,
};

Exit print_explanation(const FieldExplanation& explanation, const ParsedOptions& options,
                       const std::string& format, Console& console) {
  write_output(format == "json" ? Answer(JsonText(field_explanation_json(explanation)))
                                : Answer::terminal(explanation_table(
                                      explanation, output_style(options, console))),
               options, console);
  return Exit::ok;
}

/// Options of a trace's replay; of a scenario the path that says the same, where there is one.
struct TraceOption {
  std::string_view name, path;
};
constexpr std::array kOfTrace{TraceOption{"node", "cluster.node"},
                              TraceOption{"cluster", ""},
                              TraceOption{"nodes", "cluster.nodes"},
                              TraceOption{"fabric", "cluster.fabric"},
                              TraceOption{"step", ""},
                              TraceOption{"recorded-on", ""}};

[[noreturn]] void refuse_beside_scenario(const TraceOption& option, const ParsedOptions& options) {
  throw UsageError(fmt::format(
      "lockstep explain: found --{} beside a scenario; allowed: {}; --node, --cluster and the like "
      "are of a trace",
      option.name,
      option.path.empty() ? std::string("--set PATH=VALUE, --stack")
                          : fmt::format("--set {}={}", option.path, options.get(option.name))));
}

/// Whether what was meant to be a trace is a scenario, a plan or the like: by its name, or by its
/// keys.
bool is_document(const std::string& written, const PresetStore& presets) {
  constexpr std::uintmax_t kMostDocument = std::uintmax_t{1} << 24;
  try {
    if (!row_place(written).row.empty() || scenario_path(written, presets) != written) return true;
    if (std::filesystem::file_size(written) > kMostDocument) return false;
    const JsonCursor root = JsonCursor::parse(written, read_text_file(written));
    if (!root.is_object()) return false;
    const std::vector<std::string> keys = root.keys();
    return std::ranges::find(keys, "model") != keys.end() || command_of(root) != "run" ||
           scenario_kind(root) != ScenarioKind::step;
  } catch (const std::exception&) {
    return false;  // what the replay says of it stands
  }
}

/// A number of the trace's replay.
Exit explain_trace(const ParsedOptions& options, const PresetStore& presets,
                   const std::string& format, Console& console) {
  for (const std::string_view option : {"set", "stack", "allow-oom"}) {
    if (!options.has(option)) continue;
    throw UsageError(fmt::format("lockstep explain: found --{} beside a trace; allowed: {}", option,
                                 "--node, --nodes, --fabric, --cluster, --step, --recorded-on"));
  }
  ParsedOptions asked = options;
  asked.positionals.resize(1);
  const ExplainedAnswer answer = [&] {
    try {
      return replay_to_explain(asked, presets, console);
    } catch (const InputError&) {
      const auto given = [&](const TraceOption& option) { return options.has(option.name); };
      const auto* const option = std::ranges::find_if(kOfTrace, given);
      if (option != kOfTrace.end() && is_document(options.positionals[0], presets)) {
        refuse_beside_scenario(*option, options);
      }
      throw;
    }
  }();
  return print_explanation(
      explain_field(options.positionals[0], answer, options.positionals[1], presets), options,
      format, console);
}

std::uint32_t point_number(const ParsedOptions& options, const Sweep& sweep) {
  const std::uint64_t last = sweep.candidates() - 1;
  if (!options.has("point")) {
    throw UsageError(
        fmt::format("lockstep explain: {} is a sweep, and --point is missing; "
                    "allowed: a whole number from 0 to {}",
                    sweep.file, last));
  }
  const std::string text = options.get("point");
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || number > last) {
    throw UsageError(fmt::format("--point: found {}; allowed: a whole number from 0 to {}",
                                 in_quotes(text), last));
  }
  return static_cast<std::uint32_t>(number);
}

/// A number of a point of the sweep.
Exit explain_sweep(const std::string& path, const ParsedOptions& options,
                   const PresetStore& presets, const std::string& format, Console& console) {
  if (options.has("set")) {
    throw UsageError(
        "lockstep explain: found --set beside a sweep; allowed: --point, --stack, --presets");
  }
  const Sweep sweep = load_sweep(path, options.get("stack"));
  return print_explanation(explain_point(sweep, point_number(options, sweep),
                                         options.positionals[1], presets, options.has("allow-oom")),
                           options, format, console);
}

Exit run_explain(const ParsedOptions& options, Console& console) {
  if (options.positionals.size() < 2) {
    throw UsageError(fmt::format("lockstep explain: {} is missing; usage: lockstep {}",
                                 options.positionals.empty() ? "a scenario" : "a field",
                                 kExplainSpec.usage));
  }
  const std::string format = options.choice("format", kExplainFormats);
  const PresetStore presets(options.all("presets"));
  const bool replays = options.has("node") || options.has("cluster") ||
                       std::filesystem::is_directory(options.positionals[0]);
  if (replays) {
    if (options.has("point")) throw UsageError("lockstep explain: --point is for a sweep");
    return explain_trace(options, presets, format, console);
  }
  for (const TraceOption& option : kOfTrace) {
    if (!options.has(option.name)) continue;
    if (is_document(options.positionals[0], presets)) refuse_beside_scenario(option, options);
    throw UsageError(fmt::format(
        "lockstep explain: --{} is for a trace, beside --node or --cluster", option.name));
  }
  const std::string path = scenario_path(options.positionals[0], presets);
  const RowPlace place = row_place(path);
  std::string text = read_text_file(place.file);
  if (!place.row.empty()) text = row_scenario_text(place, text, presets);
  if (command_of(JsonCursor::parse(path, text)) == "sweep") {
    return explain_sweep(path, options, presets, format, console);
  }
  if (options.has("point")) throw UsageError("lockstep explain: --point is for a sweep");
  const ExplainedAnswer answer =
      answer_to_document(path, text, changes_of(options), presets, options.has("allow-oom"));
  const FieldExplanation explanation = explain_field(path, answer, options.positionals[1], presets);
  return print_explanation(explanation, options, format, console);
}

constexpr Command kExplainCommand{&kExplainSpec, run_explain};

}  // namespace

const Command& explain_command() { return kExplainCommand; }

}  // namespace lockstep
