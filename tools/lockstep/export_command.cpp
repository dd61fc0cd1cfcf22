#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <ostream>
#include <string>
#include <vector>

#include "models/base/input_error.hpp"
#include "models/base/text_file.hpp"
#include "sim/launch/export_job.hpp"
#include "sim/scenario/scenario_file.hpp"
#include "sim/scenario/shipped_scenarios.hpp"
#include "tools/console/shared_options.hpp"
#include "tools/lockstep/cli.hpp"

namespace lockstep {
namespace {

constexpr std::array kExportJobOptions{
    OptionSpec{"format", 0, "megatron|nemo|bridge|torchtitan|deepspeed|accelerate", false,
               "Whose launch file: megatron (a script with Megatron-LM's arguments), nemo, bridge, "
               "torchtitan, deepspeed, accelerate.",
               "--format megatron"},
    OptionSpec{"set", 0, "PATH=VALUE", true,
               "Change a value of the scenario before it is read, as lockstep run does.",
               "--set parallelism.tensor=4"},
    kPresetsOption, kOutputOption};

constexpr std::array<std::string_view, 2> kExportJobExamples{
    "lockstep export job llama3-405b-16k --format megatron -o train.sh",
    "lockstep export job llama3-8b-fsdp2-torchtitan --format torchtitan"};

constexpr CommandSpec kExportJobSpec{
    .name = "export",
    .usage = "export job FILE|NAME --format NAME [options]",
    .summary = "Write a scenario as a launch file of a training framework.",
    .about =
        "Writes layout, batch, precision, recomputation, offload and, where the format has them, "
        "the\n"
        "model and the number of nodes. What it cannot say is named on standard error. lockstep "
        "import\n"
        "job reads the file back to the same layout.",
    .positionals = 2,
    .options = kExportJobOptions,
    .examples = kExportJobExamples,
};

const ExportFormat& export_format_of(const ParsedOptions& options) {
  std::vector<std::string> names;
  const std::string wanted = options.get("format");
  for (const ExportFormat& one : export_formats()) {
    if (one.name == wanted) return one;
    names.emplace_back(one.name);
  }
  throw UsageError(fmt::format("--format: found {}; allowed: {}{}", in_quotes(wanted),
                               fmt::join(names, ", "), did_you_mean(wanted, names)));
}

/// What the format has no word for, a line each.
std::string not_exported_lines(const std::vector<NotExported>& left_out, std::string_view format) {
  std::string out;
  for (const NotExported& one : left_out) {
    out += wrap(fmt::format("not in {}: {} {}: {}", format, one.path, one.value, one.why),
                kTextColumns, 2) +
           "\n";
  }
  return out;
}

Exit run_export_job(const ParsedOptions& options, Console& console) {
  const auto usage = [](const std::string& wrong) {
    return UsageError(
        fmt::format("lockstep export: {}; usage: lockstep {}", wrong, kExportJobSpec.usage));
  };
  if (options.positionals.empty()) throw usage("nothing to do");
  const std::string& what = options.positionals[0];
  if (what != "job") {
    throw UsageError(fmt::format("lockstep export: found {}; allowed: job{}", in_quotes(what),
                                 did_you_mean(what, std::vector<std::string>{"job"})));
  }
  if (options.positionals.size() < 2) throw usage("no scenario");
  const ExportFormat& format = export_format_of(options);
  const PresetStore presets(options.all("presets"));
  const std::string path = scenario_path(options.positionals[1], presets);
  const ParsedScenario parsed = parse_scenario(path, read_text_file(path), options.all("set"));
  require_kind(parsed.root, {ScenarioKind::step, ScenarioKind::run}, "a scenario of one job");
  const Scenario scenario = *read_scenario_file(parsed, presets).job;
  const ExportedJob exported = format.write(scenario);
  console.err << terminal_text(not_exported_lines(exported.left_out, format.name));
  write_output(Answer::file(exported.text), options, console);
  return Exit::ok;
}

constexpr Command kExportJobCommand{&kExportJobSpec, run_export_job};

}  // namespace

const Command& export_command() { return kExportJobCommand; }

}  // namespace lockstep
