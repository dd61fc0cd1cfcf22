#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>

#include "models/input/input_error.hpp"
#include "models/input/text_file.hpp"
#include "tools/lockstep/cli.hpp"
#include "tools/lockstep/progress.hpp"
#include "tools/lockstep/row_validation.hpp"
#include "tools/lockstep/shared_options.hpp"
#include "tools/lockstep/validation_output.hpp"

namespace lockstep {
namespace {

constexpr std::array kOptions{
    OptionSpec{"rows", 0, "FILE", false,
               "Predict the rows of this file (the format of tests/reference/training.json) instead "
               "of the project's own.",
               "--rows measured.json"},
    OptionSpec{"dense", 0, "", false,
               "Only dense rows: no mixture of experts, latent attention, context parallelism, FSDP, "
               "ZeRO-2 or -3, FP4, and none that disagrees with its own source.",
               "--dense"},
    OptionSpec{"source", 0, "NAME", true,
               "Only rows of this source: the id up to the first '-'.", "--source bloom"},
    kFormatOption,
    OptionSpec{"jobs", 'j', "N", false,
               "Work on this many rows at once (default: one per core). The output is the same for "
               "any number.",
               "-j 2"},
    kPresetsOption,
    kOutputOption,
};

constexpr std::array<std::string_view, 3> kExamples{
    "lockstep validate",
    "lockstep validate --dense --source bloom",
    "lockstep validate --rows measured.json --format json -o errors.json",
};

constexpr CommandSpec kSpec{
    .name = "validate",
    .usage = "validate [options]",
    .summary = "Hold predictions against published measurements, row by row.",
    .about = "Predicts published training runs and prints predicted against measured: row by row, then\n"
             "by source, GPU kind and software. Without options: the project's own reference rows.\n"
             "error = predicted / measured - 1.",
    .positionals = 0,
    .options = kOptions,
    .examples = kExamples,
};

constexpr int kMostJobs = 1024;

int job_count(const ParsedOptions& options) {
  if (!options.has("jobs")) return 0;
  const std::string text = options.get("jobs");
  int jobs = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), jobs);
  if (error != std::errc{} || end != text.data() + text.size() || jobs < 1 || jobs > kMostJobs) {
    throw UsageError(fmt::format("--jobs: found {}; allowed: a whole number from 1 to {}",
                                 in_quotes(text), kMostJobs));
  }
  return jobs;
}

/// The project's own rows: in the source tree, or installed beside the presets.
std::string reference_rows(const PresetStore& presets) {
  namespace fs = std::filesystem;
  const fs::path kind_folder = fs::path(presets.path("gpus", presets.names("gpus").front())).parent_path();
  const fs::path folder = kind_folder.parent_path();
  for (const char* place : {"../../tests/reference/training.json", "../reference/training.json"}) {
    const fs::path file = (folder / place).lexically_normal();
    std::error_code ignored;
    if (fs::is_regular_file(file, ignored)) return file.string();
  }
  throw UsageError(fmt::format("the project's own reference rows are not beside its presets ({}); "
                               "name a file with --rows", folder.string()));
}

void keep_wanted(std::vector<ReferenceRow>& rows, const ParsedOptions& options) {
  const std::vector<std::string> sources = options.all("source");
  std::vector<std::string> known;
  for (const ReferenceRow& row : rows) {
    if (std::find(known.begin(), known.end(), row.source) == known.end()) known.push_back(row.source);
  }
  for (const std::string& source : sources) {
    if (std::find(known.begin(), known.end(), source) != known.end()) continue;
    throw UsageError(fmt::format("--source: found {}; allowed: {}{}", in_quotes(source),
                                 listed(known), did_you_mean(source, known)));
  }
  std::erase_if(rows, [&](const ReferenceRow& row) {
    const bool other =
        !sources.empty() && std::find(sources.begin(), sources.end(), row.source) == sources.end();
    return other || (options.has("dense") && !row.dense);
  });
}

Exit run(const ParsedOptions& options, Console& console) {
  const std::string format = options.choice("format", kFormats);
  const int jobs = job_count(options);
  const PresetStore presets(options.all("presets"));
  const std::string file = options.has("rows") ? options.get("rows") : reference_rows(presets);
  std::vector<ReferenceRow> rows = parse_rows(file, read_text_file(file));
  keep_wanted(rows, options);
  std::vector<RowPrediction> predictions;
  {
    Progress progress(console.err, "rows", rows.size(), console.err_is_terminal);
    predictions = predict_rows(rows, presets, jobs, progress);
  }
  const TextStyle style = output_style(options, console);
  write_output(format == "json" ? rows_json(predictions)
               : format == "csv" ? rows_csv(predictions) : rows_table(predictions, style),
               options, console);
  return Exit::ok;
}

constexpr Command kCommand{&kSpec, run};

}  // namespace

const Command& validate_command() { return kCommand; }

}  // namespace lockstep
