#include <algorithm>
#include <array>
#include <charconv>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <ostream>

#include "models/base/input_error.hpp"
#include "models/base/number_text.hpp"
#include "models/base/output_file.hpp"
#include "models/base/text_file.hpp"
#include "sim/measured/reference_files.hpp"
#include "sim/measured/row_document.hpp"
#include "sim/measured/row_validation.hpp"
#include "sim/measured/validate_collectives.hpp"
#include "sim/measured/validate_kernels.hpp"
#include "sim/measured/validate_power.hpp"
#include "sim/measured/validate_profile.hpp"
#include "sim/measured/validate_queue.hpp"
#include "sim/measured/validate_rl.hpp"
#include "sim/measured/validate_serving.hpp"
#include "sim/scenario/read_profile.hpp"
#include "sim/scenario/read_residuals.hpp"
#include "tools/console/assertion.hpp"
#include "tools/console/progress.hpp"
#include "tools/console/shared_options.hpp"
#include "tools/lockstep/cli.hpp"
#include "tools/views/accuracy/accuracy_page.hpp"
#include "tools/views/accuracy/interval_check.hpp"
#include "tools/views/measured/validate_fit.hpp"
#include "tools/views/report/assets.hpp"
#include "tools/views/report/points_page.hpp"
#include "tools/views/report/rows_page.hpp"
#include "tools/views/tables/validation_output.hpp"

namespace lockstep {
namespace {

constexpr std::array kValidateOptions{
    OptionSpec{
        "rows", 0, "FILE", false,
        "Predict the rows of this file instead of the project's own: each {\"row\", "
        "\"scenario\", \"measured\", \"source\"} with a scenario as `lockstep run` takes it, as "
        "tests/reference/training.json has them, or as tables of others publish them; exit status "
        "1 where a prediction misses what such a scenario expects (\"expect\": step_time, within, "
        "fits).",
        "--rows measured.json", PathUse::reads},
    OptionSpec{"gemm", 0, "FILE", false, "Predict matrix products instead of runs.",
               "--gemm tests/reference/gemm.json", PathUse::reads},
    OptionSpec{"attention", 0, "FILE", false, "Predict attention kernels instead of runs.",
               "--attention tests/reference/attention.json", PathUse::reads},
    OptionSpec{"memory", 0, "FILE", false, "Predict memory-bound kernels instead of runs.",
               "--memory tests/reference/memory_kernels.json", PathUse::reads},
    OptionSpec{"nccl", 0, "FILE", false, "Predict collectives of nccl-tests instead of runs.",
               "--nccl tests/reference/nccl.json", PathUse::reads},
    OptionSpec{"power", 0, "FILE", false, "Predict power instead of runs.",
               "--power tests/reference/power.json", PathUse::reads},
    OptionSpec{
        "rl", 0, "FILE", false,
        "Predict steps of reinforcement learning, and engines that generate, instead of runs.",
        "--rl tests/reference/rl.json", PathUse::reads},
    OptionSpec{"serving", 0, "FILE", false,
               "Predict engines that serve requests instead of runs: time per output token, time "
               "to the first token, tokens a second.",
               "--serving tests/reference/serving.json", PathUse::reads},
    OptionSpec{"queue", 0, "FILE|FOLDER", false,
               "Predict queues of jobs of which a schedule was recorded or figures were published, "
               "instead of runs: each error beside the promised one; exit status 1 where one is "
               "missed. LOCKSTEP_DATA names the folder of their traces.",
               "--queue tests/reference/queue", PathUse::reads},
    OptionSpec{"profile", 0, "FILE|NAME", true,
               "Hold the laws against the points of a profile (`lockstep list profiles`), and each "
               "point against the laws corrected by all others. With --rows: predict the rows of "
               "its card by it; of several, all points count.",
               "--profile h100.profile.json", PathUse::reads},
    OptionSpec{
        "fit", 0, "", false,
        "With --profile: fit the constants of the card's kernels, of its NVLink and of the "
        "transport "
        "to its points, say how much better that is on points left out, and print the constants; "
        "-o then writes the card's preset with them, of collectives alone NVLink's or the "
        "transport's.",
        "--profile h100.profile.json --fit -o my-presets/gpus/h100_sxm5_80gb.json"},
    OptionSpec{"intervals", 0, "", false,
               "Hold the intervals of predictions against published runs, each by what other "
               "sources say: how many they cover, and how wide they are.",
               "--intervals"},
    OptionSpec{
        "accuracy", 0, "", false,
        "Write the page about the project's accuracy (Markdown): errors by kind, source, GPU "
        "and software, intervals, the worst rows and what explains them.",
        "--accuracy -o tests/reference/accuracy.md"},
    OptionSpec{
        "composed", 0, "", false,
        "Predict every row with its software composed from what that does (its preset's features), "
        "without what was fitted to runs of it: how well software that nobody measured is "
        "predicted.",
        "--composed"},
    OptionSpec{
        "dense", 0, "", false,
        "Only dense rows: no mixture of experts, latent attention, context parallelism, FSDP, "
        "ZeRO-2 or -3, FP4, and none that disagrees with its own source.",
        "--dense"},
    OptionSpec{"source", 0, "NAME", true, "Only rows of this source: the id up to the first '-'.",
               "--source bloom"},
    OptionSpec{
        "report", 0, "FILE", false,
        "Write one self-contained HTML page: of runs every row, to be searched and sorted; of "
        "the options that name a file of points their errors, charts and worst points.",
        "--report validation.html", PathUse::writes},
    kFormatOption,
    OptionSpec{"jobs", 'j', "N", false,
               "Work on this many rows at once (default: one per core). The output is the same for "
               "any number.",
               "-j 2"},
    kFoldOption,
    kUnfoldOption,
    kPresetsOption,
    kOutputOption,
};

constexpr std::array<std::string_view, 8> kValidateExamples{
    "lockstep validate",
    "lockstep validate --profile h100_sxm5_published --report validation.html",
    "lockstep validate --profile h100.profile.json --fit",
    "lockstep validate --gemm tests/reference/gemm.json",
    "lockstep validate --queue tests/reference/queue",
    "lockstep validate --dense --source bloom",
    "lockstep validate --rows measured.json --format json -o errors.json",
    "lockstep validate --rows measured.json --profile h100.profile.json",
};

constexpr CommandSpec kValidateSpec{
    .name = "validate",
    .usage = "validate [options]",
    .summary = "Hold predictions against published measurements, row by row.",
    .about =
        "Predicts published training runs and prints predicted against measured: row by row, then\n"
        "by source, GPU kind and software. Without options: the project's own reference rows.\n"
        "error = predicted / measured - 1.\n"
        "Exit status 0: all was predicted or counted as left out, however large its errors; 1: a\n"
        "bound that a file states was missed (--queue: \"within\"; --rows: a scenario's "
        "\"expect\"),\n"
        "a line on standard error each; 2: a mistake in a file, or rows of which none has\n"
        "a measurement or none can be predicted.",
    .positionals = 0,
    .options = kValidateOptions,
    .examples = kValidateExamples,
};

/// Options that name a file of points instead of rows.
struct PointFile {
  std::string_view option;
  PointTable (*validate)(const std::string& file, const PresetStore& presets);
};
constexpr std::array kPointFiles{PointFile{"gemm", validate_gemm},
                                 PointFile{"attention", validate_attention},
                                 PointFile{"memory", validate_memory_kernels},
                                 PointFile{"nccl", validate_collectives},
                                 PointFile{"power", validate_power},
                                 PointFile{"rl", validate_rl},
                                 PointFile{"serving", validate_serving},
                                 PointFile{"queue", validate_queue},
                                 PointFile{"profile", validate_profile}};

void keep_wanted(std::vector<ReferenceRow>& rows, const ParsedOptions& options) {
  const std::vector<std::string> sources = options.all("source");
  std::vector<std::string> known;
  for (const ReferenceRow& row : rows) {
    if (std::ranges::find(known, row.source) == known.end()) known.push_back(row.source);
  }
  for (const std::string& source : sources) {
    if (std::ranges::find(known, source) != known.end()) continue;
    throw UsageError(fmt::format("--source: found {}; allowed: {}{}", in_quotes(source),
                                 listed(known), did_you_mean(source, known)));
  }
  std::erase_if(rows, [&](const ReferenceRow& row) {
    const bool other = !sources.empty() && std::ranges::find(sources, row.source) == sources.end();
    return other || (options.has("dense") && !row.dense);
  });
}

Answer formatted(const PointTable& table, const std::string& format, const TextStyle& style) {
  if (format == "json") return points_json(table);
  if (format == "csv") return points_csv(table);
  return Answer::terminal(points_table(table, style));
}

Answer formatted(const std::vector<RowPrediction>& predictions, const std::string& format,
                 const TextStyle& style) {
  if (format == "json") return rows_json(predictions);
  if (format == "csv") return rows_csv(predictions);
  return Answer::terminal(rows_table(predictions, style));
}

/// Whether --profile says how to predict the rows, and is not itself what is held against the laws.
bool corrects_rows(const ParsedOptions& options) {
  return options.has("rows") && options.has("profile") && !options.has("fit");
}

/// What was given of the options that name a file, of which there can be one only.
const PointFile* point_file(const ParsedOptions& options) {
  std::vector<std::string> given;
  const PointFile* found = nullptr;
  if (options.has("rows")) given.emplace_back("--rows");
  for (const PointFile& kind : kPointFiles) {
    if (!options.has(kind.option)) continue;
    if (kind.option == "profile" && corrects_rows(options)) continue;
    found = &kind;
    given.push_back(fmt::format("--{}", kind.option));
  }
  if (given.size() > 1) {
    throw UsageError(fmt::format("lockstep validate: found {}; allowed: one of them",
                                 fmt::join(given, " and ")));
  }
  if (found == nullptr) return nullptr;
  if (options.all(found->option).size() > 1) {
    throw UsageError("lockstep validate: several --profile; allowed: one, or more with --rows");
  }
  for (const char* rows_only : {"dense", "source", "composed", "jobs", "fold", "unfold"}) {
    if (!options.has(rows_only)) continue;
    throw UsageError(fmt::format("lockstep validate: --{} selects rows; it says nothing about --{}",
                                 rows_only, found->option));
  }
  return found;
}

Answer formatted(const ProfileFit& fit, const std::string& format, const TextStyle& style) {
  if (format == "json") return profile_fit_json(fit);
  if (format == "csv") return profile_fit_csv(fit);
  return Answer::terminal(profile_fit_table(fit, style));
}

Exit run_fit(const ParsedOptions& options, const std::string& format, const PresetStore& presets,
             Console& console) {
  if (!options.has("profile") || options.has("report")) {
    throw UsageError(options.has("report")
                         ? "lockstep validate: --report shows the points; --fit has none"
                         : "lockstep validate: --fit is for --profile");
  }
  const ProfileFit fit = fit_profile_of(options.get("profile"), presets);
  if (options.has("output")) {
    write_output(Answer::file(fitted_preset(fit, presets)), options, console);
    if (options.get("output") == kStandardInput) return Exit::ok;
  }
  console.out << formatted(fit, format, console.style).str();
  return Exit::ok;
}

/// --intervals and --accuracy say what the project's own files say.
void check_alone(const ParsedOptions& options, std::string_view option) {
  for (const std::string_view other :
       {"rows", "gemm", "attention", "memory", "nccl", "power", "rl", "serving", "queue", "profile",
        "fit", "dense", "source", "composed", "report", "accuracy", "fold", "unfold"}) {
    if (other == option || !options.has(other)) continue;
    throw UsageError(fmt::format(
        "lockstep validate: --{} is about the project's own rows; found --{}", option, other));
  }
}

std::vector<RowPrediction> predicted(const std::vector<ReferenceRow>& rows,
                                     const PresetStore& presets, int jobs, Console& console,
                                     std::span<const Profile> profiles = {},
                                     Folding folding = Folding::automatic) {
  Progress progress(console.err, "rows", rows.size(), console.err_is_terminal);
  return predict_rows(rows, presets, jobs, [&] { progress.one_done(); }, profiles, folding);
}

std::vector<ReferenceRow> own_rows(const PresetStore& presets, std::string_view name) {
  return load_rows(reference_file(presets, name), presets);
}

Answer own_accuracy(const PresetStore& presets, int jobs, Console& console) {
  const std::string file = reference_file(presets, "explanations.json");
  const std::vector<ReferenceRow> runs = own_rows(presets, "training.json");
  const std::vector<ReferenceRow> single_node = own_rows(presets, "single_node.json");
  return Answer::file(
      accuracy_page({.runs = predicted(runs, presets, jobs, console),
                     .single_node = predicted(single_node, presets, jobs, console),
                     .residuals = load_residuals(presets),
                     .explanations = read_explanations(file, read_text_file(file))}));
}

Answer own_intervals(const PresetStore& presets, const std::string& format,
                     const TextStyle& style) {
  if (format == "csv")
    throw UsageError("lockstep validate: --intervals is a table or JSON, no CSV");
  const IntervalCheck check = check_intervals(load_residuals(presets));
  if (format == "json") return intervals_json(check);
  return Answer::terminal(intervals_table(check, style));
}

/// Of rows that somebody brought at least one has to be predicted: else the table says nothing.
void require_predicted(const std::string& file, const std::vector<RowPrediction>& predictions) {
  const auto skipped = [](const RowPrediction& p) {
    return p.status == RowPrediction::Status::skipped;
  };
  if (predictions.empty() || !std::ranges::all_of(predictions, skipped)) return;
  const RowPrediction& first = predictions.front();
  throw InputError({.file = file,
                    .pointer = first.row->pointer,
                    .found = fmt::format("{}: none of {} can be predicted", in_quotes(first.reason),
                                         counted(static_cast<double>(predictions.size()), "row")),
                    .allowed = "at least one row that makes a scenario",
                    .nearest = {}});
}

Exit run_validate(const ParsedOptions& options, Console& console) {
  const std::string format = options.choice("format", kFormats);
  const int jobs = whole_number(options, "jobs", 0, kMostJobs);
  const PointFile* const points = point_file(options);
  const PresetStore presets(options.all("presets"));
  const TextStyle style = output_style(options, console);
  for (const char* own : {"intervals", "accuracy"}) {
    if (!options.has(own)) continue;
    check_alone(options, own);
    write_output(own == std::string_view("accuracy") ? own_accuracy(presets, jobs, console)
                                                     : own_intervals(presets, format, style),
                 options, console);
    return Exit::ok;
  }
  if (options.has("fit")) return run_fit(options, format, presets, console);
  if (points != nullptr) {
    const bool reports = wants_report(options);
    const PointTable table = points->validate(options.get(points->option), presets);
    if (reports) write_report(options, points_page(table, options.get(points->option)));
    write_output(formatted(table, format, style), options, console);
    return report_misses(table.missed, console);
  }
  const bool reports = wants_report(options);
  const std::string file =
      options.has("rows") ? options.get("rows") : reference_file(presets, "training.json");
  std::vector<ReferenceRow> rows = load_rows(file, presets);
  require_measured(file, rows);
  keep_wanted(rows, options);
  if (options.has("composed")) {
    for (ReferenceRow& row : rows) row.composed = true;
  }
  std::vector<Profile> profiles;
  for (const std::string& name : options.all("profile")) {
    profiles.push_back(load_profile(name, presets));
  }
  const std::vector<RowPrediction> predictions =
      predicted(rows, presets, jobs, console, profiles, folding_of(options));
  if (options.has("rows")) require_predicted(file, predictions);
  if (reports) write_report(options, rows_page(predictions, file));
  write_output(formatted(predictions, format, style), options, console);
  return report_misses(missed_expectations(predictions), console);
}

constexpr Command kValidateCommand{&kValidateSpec, run_validate};

}  // namespace

const Command& validate_command() { return kValidateCommand; }

}  // namespace lockstep
