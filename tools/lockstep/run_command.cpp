#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <memory>
#include <ostream>
#include <utility>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/number_text.hpp"
#include "models/base/output_file.hpp"
#include "models/base/text_file.hpp"
#include "sim/answer/answer.hpp"
#include "sim/answer/rl_answer.hpp"
#include "sim/measured/row_document.hpp"
#include "sim/scenario/scenario_file.hpp"
#include "sim/scenario/shipped_scenarios.hpp"
#include "sim/step/step.hpp"
#include "tools/console/ask_options.hpp"
#include "tools/console/assertion.hpp"
#include "tools/console/hash_draws.hpp"
#include "tools/console/progress.hpp"
#include "tools/console/shared_options.hpp"
#include "tools/console/trajectory_options.hpp"
#include "tools/console/work_budget.hpp"
#include "tools/lockstep/cli.hpp"
#include "tools/lockstep/queue/run_queue.hpp"
#include "tools/lockstep/rl/run_rl.hpp"
#include "tools/lockstep/run_campaign.hpp"
#include "tools/lockstep/run_shared.hpp"
#include "tools/lockstep/scaling/run_scaling.hpp"
#include "tools/lockstep/serving/run_serving.hpp"
#include "tools/lockstep/trace_export.hpp"
#include "tools/lockstep/vary/run_varied.hpp"
#include "tools/views/report/assets.hpp"
#include "tools/views/report/step_page.hpp"
#include "tools/views/run/claim_text.hpp"
#include "tools/views/run/run_pools.hpp"
#include "tools/views/run/run_result.hpp"
#include "tools/views/run/schedule_svg.hpp"
#include "tools/views/traces/perfetto_trace.hpp"
#include "tools/views/traces/power_trace.hpp"
#include "tools/views/traces/trace_writer.hpp"
#include "tools/views/vary/advice_section.hpp"

namespace lockstep {
namespace {

constexpr std::array kRunOptions{
    OptionSpec{"set", 0, "PATH=VALUE", true,
               "Change a value of the scenario before it is read: a dotted path or a JSON pointer, "
               "and a JSON value or a plain string. "
               "A number without a unit is in s, B, B/s, FLOP/s or W.",
               "--set cluster.nodes=384 --set cluster.fabric.leaf_oversubscription=2"},
    kFormatOption,
    OptionSpec{
        "profile", 0, "FILE|NAME", true,
        "Take the times of kernels and collectives from what was measured on this kind of card "
        "and network (scenarios/profile.schema.json), and the laws between the points. Of "
        "several, all points count.",
        "--profile h100.profile.json", PathUse::reads},
    OptionSpec{
        "trace", 0, "FILE", false,
        "Write the timeline of the step as Chrome Trace JSON, a row per stage and stream; "
        "compressed if the name ends in .gz. Opens in Perfetto (ui.perfetto.dev), "
        "chrome://tracing and speedscope. A name that ends in .pftrace gets Perfetto's own "
        "format, with flows from messages to the passes that take them, the critical path, and "
        "counters: memory of each stage, what classes of links carry and, for a scenario with "
        "\"power\", power. Of a scenario with \"serving\": each request on its "
        "replica, as Chrome Trace JSON: when it waited, its prompt was worked on, it "
        "decoded. Of one with \"queue\": each job on its nodes, as Chrome Trace JSON.",
        "--trace step.json.gz", PathUse::writes},
    OptionSpec{
        "metrics", 0, "FILE", false,
        "Of a scenario with \"serving\": write counters and histograms at the end of the run "
        "as OpenMetrics text, under the names that vLLM's servers have. Of one with \"queue\": "
        "GPUs held, free and broken, jobs that wait and power over time, with times from 0, "
        "under the names of the Slurm exporter where it has one. Of a step or a run, whose power "
        "is over time: --power-trace with a name that ends in .om.",
        "--metrics serving.prom", PathUse::writes},
    OptionSpec{"accounting", 0, "FILE", false,
               "Of a scenario with \"queue\": write what became of each job as `sacct -P` prints "
               "it, which "
               "`lockstep queue import --accounting` reads; times are from 2001-01-01. A name that "
               "ends in "
               ".swf gets the Standard Workload Format, whose processors are GPUs, which a queue's "
               "\"trace\" reads.",
               "--accounting sacct.txt", PathUse::writes},
    OptionSpec{"svg", 0, "FILE", false,
               "Draw the pipeline schedule of the step as SVG: a row per rank, a rectangle per "
               "pass, with the micro batch on it.",
               "--svg schedule.svg", PathUse::writes},
    OptionSpec{"chakra", 0, "DIR", false,
               "Write the step of every rank as a Chakra execution trace (DIR/step.R.et) with the "
               "process groups (DIR/comm_groups.json), as ASTRA-sim and `lockstep replay` take "
               "them.",
               "--chakra traces", PathUse::writes_folder},
    OptionSpec{"goal", 0, "FILE", false,
               "Write the step as a GOAL schedule, for LogGOPSim and ATLAHS; collectives become "
               "the messages of rings. Compressed if the name ends in .gz.",
               "--goal step.goal", PathUse::writes},
    OptionSpec{
        "scaling", 0, "GPUS", false,
        "The step on so many GPUs, with the same batch (strong scaling) and with as many "
        "sequences a replica (weak): efficiency, what is lost to what, H100 equivalents, "
        "money and energy per trillion tokens; of a run of weeks goodput, days and money too. "
        "Data parallelism grows, the rest stays.",
        "--scaling 1024,2048,4096"},
    OptionSpec{
        "power-trace", 0, "FILE", false,
        "For a scenario with \"power\": write the power of a step over its time as CSV (mean "
        "GPU, node, rack and row, and the facility, in W), or that of the whole run, phase by "
        "phase, with a \"site\" hour by hour; compressed if the name ends in .gz. A name that ends "
        "in .om gets OpenMetrics text, as promtool takes it, with times from 0.",
        "--power-trace power.csv", PathUse::writes},
    OptionSpec{
        "report", 0, "FILE", false,
        "Write one self-contained HTML page. Of one step: where the GPU time goes, the fabric "
        "coloured by use, its stages, memory, inputs and sources, with --explain-fabric what holds "
        "transfers back, with --advise what would help; with --vary all points. Of a scenario with "
        "\"jobs\": who slowed whom, on which links and when. Of one with \"run\": where the time, "
        "the FLOPs, the power and the money go, and which checkpoint interval is best. Of one with "
        "\"queue\": waits, the queue over time, and which job was where. Of one with \"serving\": "
        "what requests see, where the GPU time goes, and the load over time.",
        "--report run.html", PathUse::writes},
    kFoldOption,
    kUnfoldOption,
    OptionSpec{
        "assert", 0, "EXPR", true,
        "Require a number of the JSON output's first level to keep a bound (>=, <=, >, <, ==); "
        "exit status 1 with a line that says by how much it missed. The bound is in the number's "
        "unit, or has one: 6500 ms, 70 GiB, 1.2 MW, 5 M USD, 40 %.",
        R"(--assert "mfu>=0.40" --assert "step_s<13")"},
    OptionSpec{"trajectories", 0, "N", false,
               "For a scenario with \"run\": how many runs to draw at random, instead of what it "
               "says.",
               "--trajectories 1000"},
    OptionSpec{
        "optimise", 0, "PATH", false,
        "For a scenario with \"run\": the value at which goodput is largest, with Young's and "
        "Daly's beside it. So far for run.checkpoint.interval, with what each interval writes; the "
        "best one keeps to run.checkpoint.storage_share of the storage.",
        "--optimise run.checkpoint.interval"},
    OptionSpec{
        "vary", 0, "PATH=V1,V2,...", true,
        "The answer with each of these values of the scenario, as a table with bars; given twice, "
        "with each pair. With --model, each has the layout that is fastest there. Runs of weeks "
        "meet the same random numbers at every value.",
        "--vary cluster.node.nics=1,2,4,8"},
    OptionSpec{
        "jitter", 0, "TIME", false,
        "Start every transfer of the step up to so much late, each by a draw of its own that "
        "is the same in every run, and say what the step takes without: what bursts cost "
        "that line up exactly. On full links a lead grows with every micro batch, so that even "
        "0.01 ns moves a long step.",
        "--jitter \"5 us\""},
    kHashSeedsOption,
    OptionSpec{"jobs", 'j', "N", false,
               "For a scenario with \"run\", or --hash-seeds: draw this many at once (default: one "
               "per core). The output is the same for any number.",
               "-j 2"},
    OptionSpec{"explain-fabric", 0, "", false,
               "Say which links hold back each kind of traffic of the step, and simulate what "
               "relieves it: the next oversubscription step, other routing, faster NICs, another "
               "order of ranks.",
               "--explain-fabric"},
    OptionSpec{"allow-oom", 0, "", false,
               "Predict a job that does not fit in memory, instead of refusing it.", "--allow-oom"},
    OptionSpec{"advise", 0, "", false,
               "Simulate some twenty standard changes, each alone, instead of the answer's table: "
               "which gain how much, with the interval of each gain where there is one, and why "
               "the others cannot be; two of the first together too, where they gain more. Of a "
               "step, of weeks (with \"run\": failures and checkpoints "
               "too), of an iteration of reinforcement learning, of several jobs on one fabric, of "
               "a queue or of a service. Beside --explain-fabric with --report: a step's page has "
               "both.",
               "--advise"},
    kAskModel,
    kAskNode,
    kAskCluster,
    kAskNodes,
    kAskGpus,
    kAskFabric,
    kAskSequences,
    kAskTokens,
    kStackOption,
    kPresetsOption,
    OptionSpec{"output", 'o', "FILE", false,
               "Write to this file instead of the terminal (- is the terminal); it appears only "
               "when it is complete, and is compressed if its name ends in .gz. With --model, "
               "the file gets the scenario, and the answer is printed.",
               "-o result.json", PathUse::prints},
};

constexpr std::array<std::string_view, 21> kRunExamples{
    "lockstep run llama3-405b-16k",
    "lockstep run --model llama3_70b --node dgx_h100 --nodes 64 -o my.json",
    "lockstep run --model llama2_70b --node dgx_h100 --set lora.rank=16",
    "lockstep run --model llama3_70b --node dgx_h100 --nodes 64 --set power.facility=air_chiller",
    "lockstep run gpt3-175b-selene --set cluster.nodes=384 --set "
    "parallelism.data=32 --format json",
    "lockstep run llama3-405b-16k --trace step.json.gz",
    "lockstep run llama3-405b-16k --unfold",
    "lockstep run llama3-8b-fsdp2-torchtitan --explain-fabric --report step.html",
    "lockstep run llama3-8b-fsdp2-torchtitan --set cluster.fabric.routing=ecmp "
    "--hash-seeds 20",
    "lockstep run llama3-405b-16k --advise",
    "lockstep run llama3-405b-54days --advise --trajectories 20",
    "lockstep run --model llama3_70b --nodes 64 --node dgx_h100 --vary "
    "cluster.node=dgx_h100,dgx_b200",
    "lockstep run --model llama3_70b --nodes 64 --node dgx_h100 --set training.tokens=15T --set "
    "price.usd_per_gpu_hour=2.5",
    "lockstep run my.json --assert \"mfu>=0.40\"",
    "lockstep run llama3-405b-54days --trajectories 1000 --report run.html",
    "lockstep run llama3-405b-54days --optimise run.checkpoint.interval",
    "lockstep run two-jobs-one-spine --report congestion.html",
    "lockstep run grpo-llama3-8b-colocated",
    "lockstep run slurm-recorded --report queue.html",
    "lockstep run llama3-70b-h100-chat",
    "lockstep run tests/reference/training.json#mosaic-h100_80gb-amp_bf16-70b-s2048-g128-mb8",
};

constexpr std::array kRunHints{
    WordHint{"--mttf", "--set run.duration=\"30 d\" --set run.reliability=llama3_54_days"},
    WordHint{"--mtbf", "--set run.duration=\"30 d\" --set run.reliability=llama3_54_days"},
    WordHint{"--power-cap", "--set power.cap=\"500 W\""},
    WordHint{"--training", "--set training.tokens=15T"},
    WordHint{"--training-tokens", "--set training.tokens=15T"},
    WordHint{"--price", "--set price.usd_per_gpu_hour=2.5"},
};

constexpr CommandSpec kRunSpec{
    .name = "run",
    .usage = "run FILE|NAME [options], or run --model NAME --node NAME [options]",
    .summary = "Predict one training step of a scenario: a table and the loss waterfall.",
    .about =
        "Reads a scenario (a JSON file; scenarios/README.md describes the format), simulates one\n"
        "training step and prints step time, MFU, memory, cost and where the GPU time goes.\n"
        "A job that does not fit in memory is an error that names the nearest change that fits.\n"
        "Without a file, --model and --node ask about a model on a machine: the layout is "
        "searched.\n"
        "A scenario with \"jobs\" runs several of them on one fabric, with other traffic and with\n"
        "links that fail, and prints who slows whom, on which links.\n"
        "A scenario with \"rl\" is a step of reinforcement learning: rollout, scores, training,\n"
        "weights to the engine, on shared GPUs or on pools of their own.\n"
        "A scenario with \"queue\" has many jobs under a scheduler: who waits for how long, and "
        "where\n"
        "the cluster's GPU time goes.\n"
        "A scenario with \"serving\" has requests on pools of replicas: time to the first token,\n"
        "between tokens, tokens a second, and where GPU time goes. Keys and values between two\n"
        "pools are flows on the fabric, beside trainings where it has \"jobs\" too.\n"
        "A scenario with \"run\" goes on for days to months, with failures, checkpoints and\n"
        "restarts, and prints how much of the wall time advances training.\n"
        "ROWS.json#NAME is a row of published measurements (`lockstep validate` lists them): what\n"
        "was measured stands beside what is predicted.",
    .positionals = 1,
    .options = kRunOptions,
    .examples = kRunExamples,
    .hints = kRunHints,
};

Answer formatted(const RunResult& result, const nlohmann::ordered_json& json,
                 const ClaimCheck* claim, const std::string& format, const TextStyle& style) {
  if (format == "json") return JsonText(json);
  if (format == "csv") return result_csv(result);
  return Answer::terminal(result_table(result, style) + claim_text(claim, style));
}

void write_svg(const std::string& path, const RunResult& result) {
  OutputFile file(path);
  file.write(schedule_svg(result.report, schedule_title(result)));
  file.commit();
}

/// Options that say something about some kinds of scenario only.
struct SpecialOption {
  std::string_view name;
  std::string_view wanted;  ///< which scenarios they are for
  bool of_step, of_jobs, of_run, of_rl, of_queue, of_serving;

  [[nodiscard]] bool is_of(ScenarioKind kind) const {
    switch (kind) {
      case ScenarioKind::jobs:
        return of_jobs;
      case ScenarioKind::rl:
        return of_rl;
      case ScenarioKind::queue:
        return of_queue;
      case ScenarioKind::serving:
        return of_serving;
      case ScenarioKind::run:
        return of_run;
      default:
        return of_step;
    }
  }
};
constexpr std::string_view kOneStep = "of one step", kOneJob = "without \"jobs\"",
                           kToBeScaled = R"(of one step, or with "run" (else --vary))",
                           kRunOnly = "with \"run\"",
                           kNotJobs = R"(of one step, or with "queue" or "serving")",
                           kNoServing = "without \"serving\"",
                           kNoQueueOrServing = R"(without "queue" or "serving")",
                           kQueueOrServing = R"(with "queue" or "serving")",
                           kQueueOnly = "with \"queue\"";
constexpr std::array kSpecialOptions{
    SpecialOption{"trace", kNotJobs, true, false, false, false, true, true},
    SpecialOption{"metrics", kQueueOrServing, false, false, false, false, true, true},
    SpecialOption{"accounting", kQueueOnly, false, false, false, false, true, false},
    SpecialOption{"svg", kOneStep, true, false, false, false, false, false},
    SpecialOption{"fold", kOneJob, true, false, true, false, false, false},
    SpecialOption{"unfold", kOneJob, true, false, true, false, false, false},
    SpecialOption{"chakra", kOneStep, true, false, false, false, false, false},
    SpecialOption{"goal", kOneStep, true, false, false, false, false, false},
    SpecialOption{"power-trace", kOneJob, true, false, true, false, false, false},
    SpecialOption{"trajectories", kRunOnly, false, false, true, false, false, false},
    SpecialOption{"optimise", kRunOnly, false, false, true, false, false, false},
    SpecialOption{"vary", "", true, true, true, true, true, true},
    SpecialOption{"advise", "", true, true, true, true, true, true},
    SpecialOption{"scaling", kToBeScaled, true, false, true, false, false, false},
    SpecialOption{"jitter", kOneStep, true, false, false, false, false, false},
    SpecialOption{"explain-fabric", kOneStep, true, false, false, false, false, false},
    SpecialOption{"profile", kNoQueueOrServing, true, true, true, true, false, false},
    SpecialOption{"hash-seeds", kNoQueueOrServing, true, true, true, true, false, false},
    SpecialOption{"allow-oom", kNoServing, true, true, true, true, true, false},
    SpecialOption{"jobs", kRunOnly, false, false, true, false, false, false}};

/// `kind`: what the file has, which is asked what `asked` is.
void check_options(const ParsedOptions& options, ScenarioKind asked, ScenarioKind kind,
                   const std::string& file) {
  for (const SpecialOption& option : kSpecialOptions) {
    if (option.is_of(asked) || !options.has(option.name)) continue;
    if (option.name == "jobs" && options.has("hash-seeds")) continue;
    const std::string found =
        kind == ScenarioKind::step ? "none" : fmt::format("\"{}\"", name_of(kind));
    const bool draws_power =
        option.name == "metrics" && (asked == ScenarioKind::step || asked == ScenarioKind::run);
    throw UsageError(fmt::format(
        "lockstep run: --{} is for a scenario {}; {} has {}{}", option.name, option.wanted, file,
        found, draws_power ? "; of a step or a run --power-trace FILE.om writes its power" : ""));
  }
}

void check_options(const ParsedOptions& options, const ParsedScenario& parsed) {
  // An iteration that is repeated for weeks is asked what a run is.
  const bool iterates = parsed.kind == ScenarioKind::rl && has_run(parsed.root);
  check_options(options, iterates ? ScenarioKind::run : parsed.kind, parsed.kind,
                parsed.root.file());
}

/// What --jitter says; 0 without it. Throws UsageError.
Seconds jitter_of(const ParsedOptions& options) {
  constexpr Seconds kMost{1};
  if (!options.has("jitter")) return {};
  const Seconds jitter = time_option(options, "jitter", kMost);
  if (options.has("fold")) {
    throw UsageError("--jitter: found --fold beside it; allowed: one of them");
  }
  return jitter;
}

/// Which draw of the hashes the step is of, and the band over those that are asked for.
void add_hash(const ParsedOptions& options, Seconds jitter, RunResult& result, Console& console) {
  const Scenario& scenario = result.scenario;
  const NicPorts ports = nic_ports(scenario.node);
  const HashDraws draws =
      hash_draws_of(options, scenario.file, scenario.fabric, scenario.nodes, ports);
  if (!is_hashed(scenario.fabric, scenario.nodes, ports)) return;
  result.hash =
      answer_of_draws(draws, {result.report.step_s}, console, [&scenario, jitter](int draw) {
        Scenario drawn = scenario;
        drawn.fabric.hash_draw = draw;
        return std::vector{simulate_step(drawn, {.only_time = true, .jitter = jitter}).step_s};
      });
}

bool is_perfetto(const std::string& path) {
  return path.ends_with(".pftrace") || path.ends_with(".pftrace.gz");
}

/// Fills in all but the scenario and its memory.
void predict_step(const ParsedOptions& options, const PresetStore& presets, RunResult& result,
                  Console& console) {
  const bool reports = options.has("report");
  if (reports) (void)chart_library();
  const Seconds jitter = jitter_of(options);
  {
    ProgressInTurn progress(console.err, "passes of the step", console.err_is_terminal);
    answer_step(
        {.timeline = options.has("trace") || options.has("svg") || reports,
         .draw_fabric = reports,
         .link_rates = is_perfetto(options.get("trace")),
         .explain_fabric = options.has("explain-fabric"),
         .jitter = jitter,
         .progress = [&](std::size_t done, std::size_t all) { progress.update(done, all); }},
        StepIntervals(presets), result);
  }
  add_hash(options, jitter, result, console);
}

bool expected_to_fit(const Scenario& scenario) { return !scenario.expect || scenario.expect->fits; }

/// Refuses a job that does not fit in memory, unless --allow-oom or "expect" takes it. A published
/// row that was measured did run: it is predicted with a note.
void check_memory(const ParsedOptions& options, const JsonCursor& root, RunResult& result) {
  if (options.has("allow-oom") || !expected_to_fit(result.scenario)) return;
  const MemoryVerdict& memory = result.memory;
  if (memory.fits || !changes_of(options).empty() || !is_measured_row(root)) {
    return require_memory(result);
  }
  const auto gib = [](Bytes bytes) { return significant(bytes / gibibytes(1)) + " GiB"; };
  result.scenario.assumptions.push_back(
      fmt::format("memory: {} on a GPU that has {} usable, predicted all the same because this row "
                  "was measured",
                  gib(memory.peak.needed()), gib(memory.usable)));
}

/// What is said of a step beside its table.
struct StepVerdict {
  nlohmann::ordered_json json;  ///< null where nothing needs it
  std::unique_ptr<const ClaimCheck> claim;
  std::vector<std::string> misses;
};

StepVerdict judge_step(const RunResult& result, const std::vector<Assertion>& assertions,
                       bool prints_json) {
  const Scenario& scenario = result.scenario;
  const bool claims = scenario.expect && !scenario.expect->claim.empty();
  StepVerdict verdict;
  if (prints_json || !assertions.empty() || claims) verdict.json = result_json(result);
  verdict.misses = all_missed(assertions, verdict.json);
  verdict.claim = judge_claim(scenario.expect, verdict.json, verdict.misses);
  if (!expected_to_fit(scenario) && result.memory.fits) {
    verdict.misses.emplace_back("expectation missed: the job fits in memory");
  }
  return verdict;
}

void write_step_files(const ParsedOptions& options, const PresetStore& presets,
                      const RunResult& result, const ClaimCheck* claim) {
  if (exports_trace(options)) export_trace(options, result.scenario);
  if (options.has("power-trace")) write_power_trace(options.get("power-trace"), result);
  if (options.has("trace")) {
    OutputFile file(options.get("trace"));
    if (is_perfetto(options.get("trace"))) {
      write_perfetto(file, result);
    } else {
      write_trace(file, result.report, result.scenario.file);
    }
    file.commit();
  }
  if (options.has("svg")) write_svg(options.get("svg"), result);
  if (options.has("report"))
    write_report(options, step_page(result, {.presets = &presets, .claim = claim}));
}

/// What options say of the answer to any scenario that is a job.
struct AnswerOptions {
  std::string format;
  std::vector<Assertion> assertions;
};

Exit run_step(const ParsedOptions& options, const AnswerOptions& wanted, const PresetStore& presets,
              RunResult result, Console& console) {
  predict_step(options, presets, result, console);
  if (exports_trace(options)) note_trace(result.scenario);
  const StepVerdict verdict = judge_step(result, wanted.assertions, wanted.format == "json");
  write_step_files(options, presets, result, verdict.claim.get());
  warn_of_old_names(wanted.assertions, verdict.json, console);
  write_output(formatted(result, verdict.json, verdict.claim.get(), wanted.format,
                         output_style(options, console)),
               options, console);
  return report_misses(verdict.misses, console);
}

/// Of a file, or of a row of published measurements: "rows.json#NAME".
CommandInput read_run(const std::string& written, const PresetStore& presets) {
  std::string path = scenario_path(written, presets);
  const RowPlace place = row_place(path);
  std::string text = read_text_file(place.file);
  if (!place.row.empty()) text = row_scenario_text(place, text, presets);
  return {.file = std::move(path), .text = std::move(text)};
}

/// The step of a text, read and not yet simulated.
RunResult step_read(const std::string& path, const std::string& text, const PresetStore& presets,
                    const ParsedOptions& options) {
  const ParsedScenario parsed = parse_scenario(path, text, changes_of(options));
  const WrittenScenario written =
      std::make_shared<const nlohmann::ordered_json>(parsed.root.json());
  ScenarioFile file = read_scenario_file(
      parsed, presets, {.profiles = options.all("profile"), .folding = folding_of(options)});
  return step_to_answer(*std::move(file.job), written);
}

Exit answer_run(const CommandInput& input, const PresetStore& presets, const ParsedOptions& options,
                Console& console) {
  const auto& [path, text] = input;
  const ParsedScenario parsed = parse_scenario(path, text, changes_of(options));
  check_options(options, parsed);
  require_kind(
      parsed.root,
      {ScenarioKind::run, ScenarioKind::jobs, ScenarioKind::rl, ScenarioKind::queue,
       ScenarioKind::serving},
      fmt::format("no such key in a scenario that is run: lockstep comm {} takes this file",
                  parsed.root.file()));
  if (options.has("vary")) {
    return run_varied(path, [&](const auto&) { return text; }, presets, options, console);
  }
  if (options.has("scaling")) return run_scaling(path, text, presets, options, console);
  if (options.has("advise")) {
    if (parsed.kind != ScenarioKind::step && options.has("hash-seeds")) {
      throw UsageError(
          "lockstep run: found --hash-seeds beside --advise; allowed: one of them, but for a step");
    }
    const auto page_of = [&](const Advice& advice) {
      if (advice.goal->kind != AnswerKind::step) return advice_page(advice);
      RunResult result = step_read(path, text, presets, options);
      predict_step(options, presets, result, console);
      return step_page(result, {.presets = &presets,
                                .add_advice = [&](Page& page) { add_advice(page, advice); }});
    };
    return run_advice(path, text, presets, options, page_of, console);
  }
  const ScenarioOptions reading{.profiles = options.all("profile"), .folding = folding_of(options)};
  ScenarioFile file = read_scenario_file(parsed, presets, reading);
  nlohmann::ordered_json said = parsed.root.json();
  if (options.has("trajectories")) said["run"]["trajectories"] = trajectories_of(options, 1);
  const auto written = std::make_shared<const nlohmann::ordered_json>(std::move(said));
  if (file.jobs) return run_shared(*file.jobs, written, presets, options, console);
  if (file.queue) return run_queue(*file.queue, written, presets, options, console);
  if (file.serving) {
    announce_work({.place = file.serving->file + "#/serving/load",
                   .what = counted(static_cast<double>(file.serving->requests.size()), "request"),
                   .seconds = serving_takes(*file.serving).base_units()},
                  console.err);
    return run_serving(*std::move(file.serving), written, presets, options, console);
  }
  if (file.rl && file.run) {
    if (!options.has("allow-oom")) require_memory(*file.rl);
    return run_campaign(presets, *file.rl, written, *file.run, options, console);
  }
  if (file.rl) return run_rl(*file.rl, written, presets, options, console);
  const AnswerOptions wanted{.format = options.choice("format", kFormats),
                             .assertions = parse_assertions(options.all("assert"))};

  RunResult result = step_to_answer(*std::move(file.job), written);
  check_memory(options, parsed.root, result);
  if (options.has("power-trace") && !result.scenario.power) {
    throw UsageError(fmt::format(
        "lockstep run: --power-trace is for a scenario with \"power\"; {} has none", path));
  }
  if (file.run) {
    return run_campaign(presets, result.scenario, result.written, *file.run, options, console);
  }
  return run_step(options, wanted, presets, std::move(result), console);
}

Exit run_run(const ParsedOptions& options, Console& console) {
  const std::optional<Ask> ask = ask_of(options);
  if (!ask) return answer_first_word(run_command(), "scenario file", options, console);
  const PresetStore presets(options.all("presets"));
  const std::vector<std::string> sets = changes_of(options);
  if (options.has("vary")) {
    const ScenarioKind kind = asked_kind(*ask, sets, presets);
    check_options(options, kind, kind, std::string(kAskedFile));
    const auto text_of = [&](const std::vector<std::string>& point) {
      return asked_text(*ask, point, options, presets, console);
    };
    return run_varied(std::string(kAskedFile), text_of, presets, options, console);
  }
  const std::string text = asked_text(*ask, sets, options, presets, console);
  ParsedOptions printed = options;
  if (options.has("output") && options.get("output") != kStandardInput) {
    write_asked(text, options.get("output"));
    printed.values.erase("output");
  }
  return answer_run({std::string(kAskedFile), text}, presets, printed, console);
}

constexpr Command kRunCommand{&kRunSpec, run_run, read_run, answer_run};

}  // namespace

const Command& run_command() { return kRunCommand; }

}  // namespace lockstep
