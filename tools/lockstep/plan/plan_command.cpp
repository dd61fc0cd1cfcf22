#include <algorithm>
#include <array>
#include <filesystem>
#include <fmt/format.h>
#include <optional>
#include <ostream>
#include <thread>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/json_cursor.hpp"
#include "models/base/number_text.hpp"
#include "models/base/output_file.hpp"
#include "models/base/text_file.hpp"
#include "models/base/write_json.hpp"
#include "sim/measured/command_formulas.hpp"
#include "sim/search/read_plan.hpp"
#include "tools/console/ask_options.hpp"
#include "tools/console/ask_plan_options.hpp"
#include "tools/console/interrupt.hpp"
#include "tools/console/progress.hpp"
#include "tools/console/shared_options.hpp"
#include "tools/console/table.hpp"
#include "tools/console/work_budget.hpp"
#include "tools/lockstep/cli.hpp"
#include "tools/lockstep/vary/run_varied.hpp"
#include "tools/views/plan/plan_output.hpp"
#include "tools/views/plan/plan_page.hpp"
#include "tools/views/plan/serving_plan_output.hpp"
#include "tools/views/report/assets.hpp"
#include "tools/views/report/behind.hpp"
#include "tools/views/report/input_tables.hpp"

namespace lockstep {
namespace {

constexpr int kMostSamples = 100'000;
constexpr std::array<std::string_view, 4> kPlanFormats{"table", "json", "csv", "markdown"};

constexpr std::array kPlanOptions{
    OptionSpec{"set", 0, "PATH=VALUE", true,
               "Change a value of the plan before it is read: a dotted path or a JSON pointer, and "
               "a JSON value or a plain string. "
               "A number without a unit is in s, B, B/s, FLOP/s or W.",
               "--set limits.time=\"45 d\""},
    OptionSpec{"vary", 0, "PATH=V1,V2,...", true,
               "What is chosen with each of these values of the plan, as a table, JSON or CSV; "
               "given twice, with each pair.",
               "--vary limits.time=\"60 d,90 d\""},
    kStackOption,
    OptionSpec{"format", 0, "table|json|csv|markdown", false,
               "How to print: a table for people (the default), JSON with the unit in every name, "
               "a CSV line for each candidate, or Markdown (the default for --output x.md).",
               "--format json"},
    OptionSpec{"report", 0, "FILE", false,
               "Write one self-contained HTML page: the recommendation, the front of time, money "
               "and energy, what moves the answer, and all assumptions.",
               "--report plan.html", PathUse::writes},
    OptionSpec{"samples", 0, "N", false,
               "How many times to draw all uncertain inputs, instead of what the plan says.",
               "--samples 2000"},
    OptionSpec{"jobs", 'j', "N", false,
               "Work on this many candidates or samples at once (default: one per core). The "
               "output is the same for any number.",
               "-j 2"},
    OptionSpec{"quiet", 'q', "", false, "Show no progress.", "--quiet"},
    kPlanModel,
    kPlanTraining,
    kPlanNode,
    kPlanTime,
    kPlanGpus,
    kPlanUsd,
    kPlanPrice,
    kFoldOption,
    kUnfoldOption,
    kPresetsOption,
    OptionSpec{"output", 'o', "FILE", false,
               "Write to this file instead of the terminal (- is the terminal); it appears only "
               "when it is complete, and is compressed if its name ends in .gz. With --model, "
               "the file gets the plan, and the answer is printed.",
               "-o plan.md", PathUse::prints},
};

constexpr std::array<std::string_view, 6> kPlanExamples{
    "lockstep plan --model llama3_70b --training 15T --node dgx_h100,gb200_nvl72 --time 90d",
    "lockstep plan train-70b-15t-tokens --report plan.html",
    "lockstep plan train-405b --set limits.usd=80000000 -o plan.md",
    "lockstep plan train-70b-15t-tokens --vary limits.usd=15000000,25000000",
    "lockstep plan my-plan.json --stack my-stack.json --samples 2000",
    "lockstep plan serve-70b --report plan.html",
};

constexpr CommandSpec kPlanSpec{
    .name = "plan",
    .usage = "plan [FILE|NAME] [options]",
    .summary = "Choose a cluster: time, power, money and how sure, for each candidate.",
    .about =
        "Reads a plan (a JSON file; scenarios/plans/README.md describes the format): what to "
        "train,\n"
        "by when, with how much power and money, and which clusters could do it. Simulates a "
        "step,\n"
        "its power, failures and checkpoints on each, draws what is uncertain, and recommends "
        "one:\n"
        "with intervals, the front of time, money and energy, what the answer depends on, and "
        "which\n"
        "candidates miss which limit.\n"
        "Without a file, --model, --training and --node ask which of these servers, and how many.\n"
        "\n"
        "Of a plan whose scenario has \"serving\": the least GPUs of each machine that serve the "
        "load\n"
        "within its objectives, on one pool or on two, the layout of their replicas, how many of "
        "each,\n"
        "spares, and what they draw and cost.",
    .positionals = 1,
    .options = kPlanOptions,
    .examples = kPlanExamples,
};

std::string format_of(const ParsedOptions& options) {
  if (!options.has("format") && options.get("output").ends_with(".md")) return "markdown";
  return options.choice("format", kPlanFormats);
}

Answer formatted_plan(const PlanAnswer& answer, const std::string& format, const TextStyle& style) {
  if (format == "json") return JsonText(plan_json(answer));
  if (format == "csv") return plan_csv(answer);
  if (format == "markdown") return plan_markdown(answer);
  return Answer::terminal(plan_table(answer, style));
}

PlanReport evaluated(const PlanSpec& spec, const ParsedOptions& options, Console& console) {
  const int cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  const int jobs = whole_number(options, "jobs", cores, kMostJobs);
  const InterruptGuard guard;
  Progress progress(console.err, "plan", plan_pieces(spec),
                    console.err_is_terminal && !options.has("quiet"));
  return evaluate_plan(spec, {.jobs = jobs,
                              .progress =
                                  [&] {
                                    progress.one_done();
                                    return !InterruptGuard::interrupted();
                                  },
                              .interrupted = [] { return InterruptGuard::interrupted(); },
                              .estimated =
                                  [&](double trajectories, Seconds all) {
                                    announce_work({.place = spec.file + "#/samples",
                                                   .what = grouped(trajectories) + " trajectories",
                                                   .seconds = all.base_units() / jobs},
                                                  console.err);
                                  }});
}

/// What all candidates came to in all samples.
void check_samples(const PlanSpec& spec) {
  const double outcomes = static_cast<double>(spec.candidates.size()) * spec.samples;
  check_work_memory(
      {.place = spec.file + "#/samples",
       .what = fmt::format("{} of {}", counted(spec.samples, "sample"),
                           counted(static_cast<double>(spec.candidates.size()), "candidate")),
       .bytes = outcomes * sizeof(PlanOutcome)},
      memory_limit());
}

/// What --stack and --set change, in this order. --stack holds for every candidate, also for one
/// that says another stack in a scenario of its own.
std::vector<std::string> changes_of_plan(const ParsedOptions& options, const JsonCursor& root) {
  std::vector<std::string> out;
  if (options.has("stack")) {
    // A file is named from the root: in a plan it would be looked for beside the plan.
    const std::string named = options.get("stack");
    const bool is_file = std::filesystem::is_regular_file(named);
    const std::string stack =
        "/scenario/stack=" +
        json_string(is_file ? std::filesystem::absolute(named).string() : named);
    out.push_back(stack);
    const auto candidates = root.find("candidates");
    if (candidates && candidates->json().is_array()) {
      std::size_t index = 0;
      for (const nlohmann::ordered_json& candidate : candidates->json()) {
        const std::string place = fmt::format("/candidates/{}", index++);
        if (candidate.is_object() && candidate.contains("scenario") &&
            candidate["scenario"].is_object() && candidate["scenario"].contains("stack")) {
          out.push_back(place + stack);
        }
      }
    }
  }
  for (const std::string& set : options.all("set")) out.push_back(set);
  return out;
}

/// The plan with `more` changes after those of the options.
PlanSpec plan_of(const CommandInput& input, const PresetStore& presets,
                 const std::vector<std::string>& more, const ParsedOptions& options) {
  const auto& [path, text] = input;
  std::vector<std::string> sets = changes_of_plan(options, JsonCursor::parse(path, text));
  sets.insert(sets.end(), more.begin(), more.end());
  PlanSpec spec = read_plan(path, text, presets, sets);
  for (PlanCandidate& candidate : spec.candidates) candidate.scenario.folding = folding_of(options);
  spec.samples = static_cast<std::uint32_t>(
      whole_number(options, "samples", static_cast<int>(spec.samples), kMostSamples));
  check_samples(spec);
  return spec;
}

/// The plan's document with what the options change.
WrittenScenario written_plan(const CommandInput& input, const ParsedOptions& options) {
  const auto& [path, text] = input;
  std::vector<std::string> sets = changes_of_plan(options, JsonCursor::parse(path, text));
  if (options.has("samples")) sets.push_back("samples=" + options.get("samples"));
  return written_in(JsonCursor::parse(path, text, JsonStyle::plain, sets));
}

/// What is chosen for each value of --vary.
Exit answer_varied_plan(const CommandInput& input, const PresetStore& presets,
                        const ParsedOptions& options, Console& console) {
  const auto answer_to = [&](const std::vector<std::string>& point, const auto&) {
    std::vector<std::string> sets = options.all("set");
    sets.insert(sets.end(), point.begin(), point.end());
    if (const JsonCursor root = JsonCursor::parse(input.file, input.text, JsonStyle::plain, sets);
        is_serving_plan(root)) {
      auto answer = serving_plan_point(root, presets, options, console);
      if (answer) return *std::move(answer);
      throw interruption_of(input.file);
    }
    const PlanSpec spec = plan_of(input, presets, point, options);
    const PlanReport report = evaluated(spec, options, console);
    if (!report.interrupted) return plan_json(PlanAnswer{spec, report});
    throw interruption_of(input.file);
  };
  return answer_varied({input.file, written_plan(input, options), presets}, answer_to, {}, "plan",
                       options, console);
}

Exit answer_plan(const CommandInput& input, const PresetStore& presets,
                 const ParsedOptions& options, Console& console) {
  if (options.has("vary")) return answer_varied_plan(input, presets, options, console);
  const std::string format = format_of(options);
  if (options.has("report")) (void)chart_library();
  if (const JsonCursor root =
          JsonCursor::parse(input.file, input.text, JsonStyle::plain, options.all("set"));
      is_serving_plan(root)) {
    return answer_serving_plan(root, presets, options, format, console);
  }
  const PlanSpec spec = plan_of(input, presets, {}, options);
  const PlanReport report = evaluated(spec, options, console);
  if (report.interrupted) return Exit::interrupted;
  const PlanAnswer answer{spec, report};
  if (options.has("report")) {
    OutputFile file(options.get("report"));
    const WrittenScenario written = written_plan(input, options);
    const Behind behind(
        spec.file, explained_command(CommandAnswer::plan, plan_json(answer), *written), presets);
    file.write(plan_page(answer, written, &behind));
    file.commit();
  }
  write_output(formatted_plan(answer, format, output_style(options, console)), options, console);
  return Exit::ok;
}

/// Writes the plan that was asked for, changes and all, once it is known to be one.
void write_asked_plan(const std::string& text, const ParsedOptions& options,
                      const PresetStore& presets) {
  const std::string file = options.get("output");
  if (file.ends_with(".md")) {
    throw UsageError(
        fmt::format("--output: found {} beside --model; allowed: a .json file, for "
                    "the plan; --format markdown prints the answer so",
                    in_quotes(file)));
  }
  const std::string asked(kAskedFile);
  const std::vector<std::string> sets = changes_of_plan(options, JsonCursor::parse(asked, text));
  (void)read_plan(asked, text, presets, sets);
  write_asked(write_json(JsonCursor::parse(asked, text, JsonStyle::plain, sets).json()), file);
}

Exit run_plan(const ParsedOptions& options, Console& console) {
  const std::optional<PlanAsk> ask = plan_ask_of(options);
  if (!ask) return answer_first_word(plan_command(), "plan file", options, console);
  const PresetStore presets(options.all("presets"));
  const std::string text = ask_plan(*ask, options.all("set"), presets);
  ParsedOptions printed = options;
  if (options.has("output") && options.get("output") != kStandardInput) {
    (void)format_of(options);
    write_asked_plan(text, options, presets);
    printed.values.erase("output");
  }
  return answer_plan({std::string(kAskedFile), text}, presets, printed, console);
}

constexpr Command kPlanCommand{&kPlanSpec, run_plan, read_scenario_input, answer_plan};

}  // namespace

const Command& plan_command() { return kPlanCommand; }

}  // namespace lockstep
