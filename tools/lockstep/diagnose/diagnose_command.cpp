#include <array>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "models/base/input_file.hpp"
#include "models/base/text_file.hpp"
#include "sim/measured/device_name.hpp"
#include "sim/measured/diagnosis.hpp"
#include "sim/measured/recordings.hpp"
#include "sim/measured/trace_files.hpp"
#include "sim/scenario/scenario_file.hpp"
#include "sim/scenario/shipped_scenarios.hpp"
#include "tools/console/assertion.hpp"
#include "tools/console/shared_options.hpp"
#include "tools/lockstep/cli.hpp"
#include "tools/views/diagnose/diagnosis_page.hpp"
#include "tools/views/diagnose/diagnosis_text.hpp"
#include "tools/views/report/assets.hpp"

namespace lockstep {
namespace {

constexpr std::array<std::string_view, 2> kDiagnoseFormats{"table", "json"};

constexpr std::array kDiagnoseOptions{
    OptionSpec{"step", 0, "N", false, "The ProfilerStep that is looked at; else the median step.",
               "--step 16"},
    OptionSpec{"set", 0, "PATH=VALUE", true,
               "Change a value of the scenario before it is read, as lockstep run does.",
               "--set cluster.nodes=64"},
    OptionSpec{
        "telemetry", 0, "FILE", true,
        "What a monitor logged of the GPUs during the job (nvidia-smi --query-gpu as CSV, "
        "-q or dmon of it, dmon of dcgmi, CSV of DCGM's fields, amd-smi monitor or metric, CSV of "
        "rocm-smi, metrics of dcgm-exporter as Prometheus has them; "
        "plain or .gz): power and clock beside the prediction, and the GPU that is slow or "
        "throttled. Of several files each is another node's.",
        "--telemetry gpus.csv", PathUse::reads},
    kStackOption,
    OptionSpec{"format", 0, "table|json", false,
               "How to print: a table for people (the default), or JSON.", "--format json"},
    OptionSpec{"assert", 0, "EXPR", true,
               "A bound on a number of the JSON, such as recorded_over_predicted<=1.1; exit status "
               "1 where it is missed.",
               "--assert \"recorded_over_predicted<=1.1\""},
    OptionSpec{"report", 0, "FILE", false,
               "Write one self-contained HTML page: recorded beside predicted by part, operator, "
               "rank and collective, what each difference costs, power and clock of a log.",
               "--report diagnosis.html", PathUse::writes},
    kPresetsOption,
    kOutputOption};

constexpr std::array<std::string_view, 4> kDiagnoseExamples{
    "lockstep diagnose my-job.json traces/",
    "lockstep diagnose my-job.json traces/ --report diagnosis.html",
    "lockstep diagnose my-job.json --telemetry gpus.csv",
    "lockstep diagnose my-job.json rank*.json.gz --stack my-stack.json --format json"};

constexpr CommandSpec kDiagnoseSpec{
    .name = "diagnose",
    .usage = "diagnose SCENARIO TRACE...|--telemetry FILE [options]",
    .summary = "Say why a recorded step takes longer, or less, than predicted.",
    .about =
        "Simulates the scenario and holds a recording of the same job against it: traces of the\n"
        "PyTorch profiler (Kineto) or SQLite exports of Nsight Systems, of all ranks or of some.\n"
        "Prints where the difference lies (in products and attention, memory-bound kernels,\n"
        "communication and waits, the host), and by operator of the model: a kernel is of the\n"
        "operator that the names and sizes around its launch tell (record_shapes=True, emit_nvtx\n"
        "under Nsight), and what nothing tells is a row of its own; then which rank works longest\n"
        "and what that costs a step, and each collective's shortest call beside what it takes on\n"
        "the scenario's cluster, by process group, so that a slow link shows.\n"
        "Ranks are in Megatron's order: tensor, context, data, pipeline. With --telemetry also, "
        "or\n"
        "alone, the power and clock of the GPUs: mean, 99th percentile and swing of a second's\n"
        "readings, and which GPU the others wait for.",
    .positionals = 1'000'000,
    .options = kDiagnoseOptions,
    .examples = kDiagnoseExamples,
};

/// A log of each file; GPUs of several carry the name of theirs.
std::vector<TelemetryLog> telemetry_logs(const std::vector<std::string>& files) {
  constexpr std::size_t kMostLog = std::size_t{1} << 30;
  std::vector<TelemetryLog> out;
  for (const std::string& file : files) {
    TelemetryLog& log = out.emplace_back(read_telemetry(file, read_maybe_gzip(file, kMostLog)));
    if (files.size() < 2) continue;
    for (TelemetryGpu& gpu : log.gpus) gpu.name = fmt::format("{}: {}", file, gpu.name);
  }
  return out;
}

StepRequest step_asked(const ParsedOptions& options) {
  if (!options.has("step")) return {};
  constexpr int kMostStep = 1'000'000'000;
  return {.all = false, .number = whole_number(options, "step", 0, kMostStep)};
}

/// With `power` what it draws, too, at a site as it is assumed where the scenario says none.
RunResult predicted_step(const std::string& path, const PresetStore& presets,
                         const ParsedOptions& options, bool power) {
  const std::string text = read_text_file(path);
  std::vector<std::string> changes = changes_of(options);
  if (power && !parse_scenario(path, text, changes).root.find("power")) {
    changes.emplace_back("power={}");
  }
  const ParsedScenario parsed = parse_scenario(path, text, changes);
  require_kind(parsed.root, {ScenarioKind::run}, "no such key: a diagnosis is of a training step");
  ScenarioFile file = read_scenario_file(parsed, presets, {});
  RunResult result = step_to_answer(
      *std::move(file.job), std::make_shared<const nlohmann::ordered_json>(parsed.root.json()));
  answer_step({.full_fabric = false}, StepIntervals(presets), result);
  return result;
}

/// Of traces, of logs, or of both.
Diagnosis diagnosis_of(const RunResult& predicted, const PresetStore& presets,
                       const ParsedOptions& options) {
  const std::vector<std::string> words(options.positionals.begin() + 1, options.positionals.end());
  const std::vector<std::string> files = options.all("telemetry");
  const std::vector<TelemetryLog> logs = telemetry_logs(files);
  const std::string& gpu = predicted.scenario.node.gpu.name;
  Diagnosis found;
  if (words.empty()) {
    found = diagnose_telemetry(predicted, logs);
  } else {
    const StepRecordings recorded =
        read_step_recordings(trace_files(words), step_asked(options), false);
    found = diagnose(predicted, recorded.recordings, recorded.ranks);
    if (!recorded.rank_note.empty()) found.notes.insert(found.notes.begin(), recorded.rank_note);
    found.notes.insert(found.notes.begin(), recorded.note);
    check_device(recorded.recordings.front().file, recorded.recordings.front().device, gpu,
                 "the scenario", presets, found.notes);
    if (!logs.empty()) found.telemetry = compare_telemetry(predicted, logs);
  }
  for (std::size_t i = 0; i < logs.size(); ++i) {
    check_device(files[i], logs[i].device, gpu, "the scenario", presets, found.telemetry->notes);
  }
  return found;
}

Exit run_diagnose(const ParsedOptions& options, Console& console) {
  const bool has_logs = options.has("telemetry");
  if (options.positionals.empty() || (options.positionals.size() < 2 && !has_logs)) {
    throw UsageError(fmt::format("lockstep diagnose: {} is missing; usage: lockstep {}",
                                 options.positionals.empty() ? "a scenario" : "a trace",
                                 kDiagnoseSpec.usage));
  }
  if (options.has("step") && options.positionals.size() < 2) {
    throw UsageError("lockstep diagnose: --step is for traces");
  }
  const std::string format = options.choice("format", kDiagnoseFormats);
  const bool reports = wants_report(options);
  const std::vector<Assertion> assertions = parse_assertions(options.all("assert"));
  const PresetStore presets(options.all("presets"));
  const RunResult predicted =
      predicted_step(scenario_path(options.positionals[0], presets), presets, options, has_logs);
  const Diagnosis found = diagnosis_of(predicted, presets, options);
  const nlohmann::ordered_json answer = diagnosis_json(found);
  const std::vector<std::string> misses = all_missed(assertions, answer);
  if (reports) write_report(options, diagnosis_page(found, predicted, presets));
  write_output(format == "json"
                   ? Answer(JsonText(answer))
                   : Answer::terminal(diagnosis_text(found, output_style(options, console))),
               options, console);
  return report_misses(misses, console);
}

constexpr Command kDiagnoseCommand{&kDiagnoseSpec, run_diagnose};

}  // namespace

const Command& diagnose_command() { return kDiagnoseCommand; }

}  // namespace lockstep
