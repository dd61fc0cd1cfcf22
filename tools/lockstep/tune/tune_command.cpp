#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <optional>
#include <ostream>
#include <string_view>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/output_file.hpp"
#include "models/base/write_json.hpp"
#include "models/pipeline/schedule.hpp"
#include "sim/power/step_power.hpp"
#include "sim/scenario/read_cluster.hpp"
#include "sim/scenario/read_residuals.hpp"
#include "sim/scenario/run_spec.hpp"
#include "sim/scenario/scenario_file.hpp"
#include "sim/search/search_base.hpp"
#include "sim/search/tuned_scenario.hpp"
#include "sim/step/step.hpp"
#include "tools/console/ask_options.hpp"
#include "tools/console/interrupt.hpp"
#include "tools/console/progress.hpp"
#include "tools/console/shared_options.hpp"
#include "tools/lockstep/cli.hpp"
#include "tools/lockstep/tune/serving_tune.hpp"
#include "tools/lockstep/tune/tune_options.hpp"
#include "tools/lockstep/vary/run_varied.hpp"
#include "tools/views/report/assets.hpp"
#include "tools/views/report/behind.hpp"
#include "tools/views/report/input_tables.hpp"
#include "tools/views/run/run_result.hpp"
#include "tools/views/tune/tune_output.hpp"
#include "tools/views/tune/tune_page.hpp"

namespace lockstep {
namespace {

constexpr std::array<std::string_view, 2> kObjectives{"step_time", "mfu"};
constexpr int kMostKept = 10'000;

constexpr std::array kTuneOptions{
    kAskModel,
    kAskNode,
    kAskCluster,
    kAskNodes,
    kAskGpus,
    kAskFabric,
    kAskTokens,
    OptionSpec{"set", 0, "PATH=VALUE", true,
               "Change a value of the scenario before it is read: a dotted path or a JSON pointer, "
               "and a JSON value or a plain string.",
               "--set cluster.nodes=1024"},
    OptionSpec{"vary", 0, "PATH=V1,V2,...", true,
               "The best layout with each of these values of the scenario; given twice, with each "
               "pair.",
               "--vary cluster.nodes=16,32,64"},
    OptionSpec{"objective", 0, "step_time|mfu|goodput|throughput", false,
               "What makes a layout better, and what the table leads with. Of a training step_time "
               "or mfu: as batch and cluster are fixed, both give the same order, and so would "
               "cost. Of a service goodput, requests a second within all objectives (the "
               "default), or throughput, output tokens a second of the load as it is.",
               "--objective goodput"},
    OptionSpec{"keep", 0, "N", false, "How many layouts to print (default: 10).", "--keep 20"},
    OptionSpec{"tensor", 0, "N,...", false,
               "Only these tensor-parallel widths. Left out: divisors of the attention heads up to "
               "an NVLink domain.",
               "--tensor 4,8,16"},
    OptionSpec{"pipeline", 0, "N,...", false,
               "Only these numbers of pipeline stages. Left out: all that the layers allow.",
               "--pipeline 8,16"},
    OptionSpec{"context", 0, "N,...", false,
               "Only these context-parallel widths. Left out: those that leave each rank 2,048 "
               "tokens of a sequence or more.",
               "--context 1,2"},
    OptionSpec{"expert", 0, "N,...", false,
               "Only these expert-parallel widths. Left out: divisors of the experts.",
               "--expert 8,64"},
    OptionSpec{"attention-data", 0, "N,...", false,
               "Of a service: only these widths of data-parallel attention. Left out: 1, and where "
               "attention is latent powers of two within an NVLink domain.",
               "--attention-data 1,8"},
    OptionSpec{"pass-tokens", 0, "N,...", false,
               "Of a service: tokens that a pass takes. Left out: the engine's own, and others for "
               "the best layouts.",
               "--pass-tokens 2048,8192"},
    OptionSpec{"sequences", 0, "N,...", false,
               "Of a service: sequences that a replica runs at once. Left out: as for "
               "--pass-tokens. With --model: sequences of a step.",
               "--sequences 64,256"},
    OptionSpec{"pools", 0, "one|two|any", false,
               "Of a service: one pool, or one for prompts and one that decodes. Left out: any.",
               "--pools two"},
    OptionSpec{"virtual-stages", 0, "N,...", false,
               "Only these numbers of virtual stages. Left out: those that spread the layers "
               "evenly.",
               "--virtual-stages 1,2,4"},
    OptionSpec{"micro-batch", 0, "N,...", false,
               "Only these micro batches, in sequences. Left out: those that divide a replica's "
               "sequences.",
               "--micro-batch 1,2"},
    OptionSpec{"recompute", 0, "none|selective|full,...", false,
               "Only these of none, selective, full. Left out: none, full, and selective where it "
               "saves memory.",
               "--recompute none,selective"},
    OptionSpec{"sharding", 0, "none|zero1|zero2|zero3,...", false,
               "Only these of none, zero1, zero2, zero3. Left out: all that the software can.",
               "--sharding none,zero1"},
    OptionSpec{"schedule", 0, "NAME,...", false,
               "Only these pipeline schedules (`lockstep list schedules`). Left out: 1f1b, "
               "interleaved, and the scenario's own.",
               "--schedule 1f1b,zb_h1"},
    OptionSpec{
        "report", 0, "FILE", false,
        "Write one self-contained HTML page: the best layouts with their intervals and ties, "
        "the front of time, memory and money, where each one's time goes.",
        "--report layouts.html", PathUse::writes},
    OptionSpec{"exhaustive", 0, "", false,
               "Replay every layout that fits, without lower bounds: the same answer, later.",
               "--exhaustive"},
    OptionSpec{"jobs", 'j', "N", false,
               "Replay this many at once (default: one per core). The output is the same for any "
               "number.",
               "-j 2"},
    kFormatOption,
    OptionSpec{"profile", 0, "FILE|NAME", true,
               "Take the times of kernels and collectives from what was measured on this kind of "
               "card and network.",
               "--profile h100.profile.json", PathUse::reads},
    OptionSpec{"output", 'o', "FILE", false,
               "Write the scenario with the best layout, for `lockstep run`.", "-o best.json",
               PathUse::writes},
    OptionSpec{"quiet", 'q', "", false, "Show no progress.", "--quiet"},
    kFoldOption,
    kUnfoldOption,
    kStackOption,
    kPresetsOption,
};

constexpr std::array<std::string_view, 7> kTuneExamples{
    "lockstep tune --model llama3_70b --node dgx_h100 --nodes 32",
    "lockstep tune llama3-405b-16k",
    "lockstep tune llama3-405b-16k --objective mfu -o best.json",
    "lockstep tune bloom-176b --sharding none,zero1 --micro-batch 1,2,4",
    "lockstep tune my.json --set cluster.nodes=64 --format json",
    "lockstep tune my.json --vary cluster.node=dgx_h100,dgx_b200",
    "lockstep tune llama3-70b-h100-chat --objective goodput",
};

constexpr CommandSpec kTuneSpec{
    .name = "tune",
    .usage = "tune [FILE|NAME] [options]",
    .summary = "Find the best layout of a training job or a service on its cluster.",
    .about =
        "Searches tensor x context x pipeline x virtual stages x experts x replicas x micro batch\n"
        "x recomputation x sharding for the model, the batch and the cluster of a scenario, among\n"
        "what its software can run (`lockstep show stacks NAME`), by its rules and within its\n"
        "memory. What a lower bound does not rule out is simulated as `lockstep run` does it.\n"
        "Prints the best, with the interval of each, what they spend their time on, why the "
        "others\n"
        "were left out, and which place the scenario's own layout takes. Of layouts within 1 % of\n"
        "the fastest the plainest comes first, or one whose interval ends 10 % nearer. The\n"
        "scenario's own layout may be missing or wrong.\n"
        "Of a scenario with \"serving\": one pool or two, the layout of a replica and what its "
        "passes\n"
        "take, for as many GPUs as its pools have.",
    .positionals = 1,
    .options = kTuneOptions,
    .examples = kTuneExamples,
};

std::vector<Schedule> schedules_of(const ParsedOptions& options) {
  std::vector<Schedule> out;
  for (const auto place : choices_of<std::size_t>(options, "schedule", schedule_names())) {
    out.push_back(schedule_at(place));
  }
  return out;
}

TuneSpace space_of(const ParsedOptions& options) {
  return {.tensor = numbers_of(options, "tensor"),
          .pipeline = numbers_of(options, "pipeline"),
          .context = numbers_of(options, "context"),
          .expert = numbers_of(options, "expert"),
          .expert_tensor = {},
          .virtual_stages = numbers_of(options, "virtual-stages"),
          .micro_sequences = numbers_of(options, "micro-batch"),
          .recompute = choices_of<Recompute>(options, "recompute", kRecomputeNames),
          .sharding = choices_of<Sharding>(options, "sharding", kShardingNames),
          .schedules = schedules_of(options)};
}

/// Throws UsageError for a width of which no value divides the GPUs, whatever the others are.
void check_widths(const TuneSpace& space, int gpus) {
  const auto check = [gpus](std::string_view option, const std::vector<int>& widths) {
    const auto divides = [gpus](int width) { return gpus % width == 0; };
    if (widths.empty() || std::ranges::any_of(widths, divides)) return;
    throw UsageError(fmt::format("--{}: found {}; allowed: a divisor of the {} GPUs", option,
                                 fmt::join(widths, ","), gpus));
  };
  check("tensor", space.tensor);
  check("pipeline", space.pipeline);
  check("context", space.context);
}

void add_intervals(const StepIntervals& intervals, TuneStudy& study) {
  for (const TunedLayout& layout : study.result.best) {
    study.intervals.push_back(intervals.of(layout.scenario).value());
    widen(study.intervals.back(), layout.band, layout.step_s);
  }
  if (!study.result.own) return;
  study.own_interval = intervals.of(study.base);
  widen(*study.own_interval, study.result.own->band, study.result.own->step_s);
}

/// Where the site has a limit, what the best layouts draw; a search looks at their time alone.
void add_limits(TuneStudy& study) {
  const std::optional<PowerSpec>& power = study.base.power;
  if (!power || !power->site_limit) return;
  for (const TunedLayout& layout : study.result.best) {
    const StepReport step =
        simulate_step(layout.scenario, {.record_timeline = true, .keep_actors = true});
    study.limits.add(step_power(layout.scenario, step).above(*power->site_limit).base_units(),
                     power->site_limit->base_units());
  }
}

/// Whether somebody gave a layout: a scenario has one, options that stand for it only by --set.
bool layout_given(const std::string& path, const std::vector<std::string>& sets) {
  const auto of_layout = [](const std::string& set) { return set.starts_with("parallelism"); };
  return path != kAskedFile || std::ranges::any_of(sets, of_layout);
}

TuneStudy studied(const std::string& path, const std::string& text, const PresetStore& presets,
                  const std::vector<std::string>& sets, const ParsedOptions& options,
                  Console& console) {
  refuse_serving_options(options);
  require_kind(JsonCursor::parse(path, text, JsonStyle::plain, sets), {ScenarioKind::run},
               "no such key: a layout is found for one job at a time, and for its training");
  const bool by_mfu = options.choice("objective", kObjectives) == "mfu";
  // With its "run", for which a search has no use: a mistake in it is one here too.
  SearchBase base = search_base_of(read_job_file(path, text, presets, sets).draft, presets,
                                   {.profiles = options.all("profile")});
  base.scenario.folding = folding_of(options);
  TuneStudy study{.base = std::move(base.scenario), .result = {}, .by_mfu = by_mfu};
  const TuneSpace space = space_of(options);
  check_widths(space, study.base.gpus());
  const bool given = layout_given(path, sets);
  {
    const InterruptGuard guard;
    const StepIntervals intervals(presets);
    Progress progress(console.err, "layouts", 1, console.err_is_terminal && !options.has("quiet"));
    TuneOptions how{
        .space = space,
        .keep = static_cast<std::size_t>(whole_number(options, "keep", 10, kMostKept)),
        .exhaustive = options.has("exhaustive"),
        .rank_own = given,
        .own_problem = std::move(base.own_problem),
        .slow_end = [&](const Scenario& tied) { return intervals.slow_end(tied); },
        .threads = options.has("jobs") ? whole_number(options, "jobs", 1, kMostJobs) : 0,
        .interrupted = [] { return InterruptGuard::interrupted(); },
        .progress = [&](std::size_t done, std::size_t most) { progress.update(done, most); }};
    study.result = tune(study.base, how);
  }
  if (!given) {
    study.result.own.reset();
    study.result.own_problem.clear();
  }
  const TuneResult& result = study.result;
  if (result.best.empty() && !result.interrupted) fail_without_layout(study.base, result, space);
  add_intervals(StepIntervals(presets), study);
  add_limits(study);
  return study;
}

/// What the page of the search says that it rests on.
AnswerBasis tune_basis(const CommandInput& input, const PresetStore& presets,
                       const TuneStudy& study, const std::vector<std::string>& sets) {
  return {.simulated = job_words(study.base),
          .written = written_in(JsonCursor::parse(input.file, input.text, JsonStyle::plain, sets)),
          .assumptions = study.base.assumptions,
          .presets = &presets,
          .named = presets_of(study.base, presets)};
}

/// What stands behind the numbers of a step with the best layout; nothing where none was found.
std::optional<Behind> behind_best(const CommandInput& input, const PresetStore& presets,
                                  const TuneStudy& study, const std::vector<std::string>& sets,
                                  const ParsedOptions& options) {
  if (study.result.best.empty()) return std::nullopt;
  const JsonCursor root = JsonCursor::parse(input.file, input.text, JsonStyle::plain, sets);
  nlohmann::ordered_json best =
      tuned_scenario(root, study.result.best.front().scenario, input.file, input.file);
  best.erase("run");  // figures are of the step
  return Behind(input.file,
                answer_text(input.file, write_json(best), presets,
                            {.profiles = options.all("profile"),
                             .folding = folding_of(options),
                             .allow_oom = true,
                             .full_fabric = false}),
                presets);
}

/// The best layout for each value of --vary.
Exit answer_varied_tune(const CommandInput& input, const PresetStore& presets,
                        const ParsedOptions& options, Console& console) {
  constexpr std::array<std::string_view, 1> kOfOneSearch{"output"};
  const auto answer_to = [&](const std::vector<std::string>& point, const auto&) {
    std::vector<std::string> sets = changes_of(options);
    sets.insert(sets.end(), point.begin(), point.end());
    if (const JsonCursor root = JsonCursor::parse(input.file, input.text, JsonStyle::plain, sets);
        scenario_kind(root) == ScenarioKind::serving) {
      auto answer = serving_tune_point(root, presets, options, console);
      if (answer) return *std::move(answer);
      throw interruption_of(input.file);
    }
    return tune_json(studied(input.file, input.text, presets, sets, options, console));
  };
  const WrittenScenario written =
      written_in(JsonCursor::parse(input.file, input.text, JsonStyle::plain, changes_of(options)));
  return answer_varied({input.file, written, presets}, answer_to, kOfOneSearch, "tune", options,
                       console);
}

Exit answer_tune(const CommandInput& input, const PresetStore& presets,
                 const ParsedOptions& options, Console& console) {
  const auto& [path, text] = input;
  if (options.has("vary")) return answer_varied_tune(input, presets, options, console);
  const std::string format = options.choice("format", kFormats);
  const bool reports = wants_report(options);
  if (options.get("output").ends_with(".gz")) {
    throw UsageError(
        fmt::format("--output: found {}; allowed: a name without .gz, as scenarios "
                    "are read uncompressed",
                    in_quotes(options.get("output"))));
  }
  const std::vector<std::string> sets = changes_of(options);
  if (const JsonCursor root = JsonCursor::parse(path, text, JsonStyle::plain, sets);
      scenario_kind(root) == ScenarioKind::serving) {
    return answer_serving_tune(root, path, presets, options, console);
  }
  const TuneStudy study = studied(path, text, presets, sets, options, console);
  const TuneResult& result = study.result;
  if (options.has("output") && !result.best.empty()) {
    const JsonCursor root = JsonCursor::parse(path, text, JsonStyle::plain, sets);
    OutputFile file(options.get("output"));
    file.write(
        write_json(tuned_scenario(root, result.best.front().scenario, path, options.get("output")),
                   2) +
        "\n");
    file.commit();
  }
  if (reports) {
    const std::optional<Behind> behind = behind_best(input, presets, study, sets, options);
    write_report(options, tune_page(study, tune_basis(input, presets, study, sets),
                                    behind ? &*behind : nullptr));
  }
  const Answer answer = format == "json"  ? Answer(JsonText(tune_json(study)))
                        : format == "csv" ? Answer(tune_csv(study))
                                          : Answer::terminal(tune_table(study, console.style));
  console.out << answer.str();
  return result.interrupted ? Exit::interrupted : Exit::ok;
}

/// A service's --sequences stands beside a file, a step's beside --model.
std::optional<Ask> ask_of_tune(const ParsedOptions& options) {
  if (options.has("model")) return ask_of(options);
  ParsedOptions others = options;
  others.values.erase("sequences");
  return ask_of(others);
}

Exit run_tune(const ParsedOptions& options, Console& console) {
  if (const std::optional<Ask> ask = ask_of_tune(options)) {
    const PresetStore presets(options.all("presets"));
    const std::string text = asked_text(*ask, changes_of(options), options, presets, console);
    ParsedOptions others = options;
    others.values.erase("sequences");
    return answer_tune({std::string(kAskedFile), text}, presets, others, console);
  }
  return answer_first_word(tune_command(), "scenario file", options, console);
}

constexpr Command kTuneCommand{&kTuneSpec, run_tune, read_scenario_input, answer_tune};

}  // namespace

const Command& tune_command() { return kTuneCommand; }

}  // namespace lockstep
