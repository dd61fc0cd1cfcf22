#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <optional>
#include <ostream>
#include <thread>
#include <unistd.h>

#include "models/base/input_error.hpp"
#include "models/base/number_text.hpp"
#include "models/base/output_file.hpp"
#include "sim/scenario/shipped_scenarios.hpp"
#include "sim/search/sweep/engine.hpp"
#include "sim/search/sweep/objective.hpp"
#include "sim/search/sweep/points.hpp"
#include "sim/search/sweep/simulate_point.hpp"
#include "tools/console/shared_options.hpp"
#include "tools/lockstep/cli.hpp"
#include "tools/sweep/estimate_text.hpp"
#include "tools/sweep/local_sweep.hpp"
#include "tools/sweep/shards.hpp"
#include "tools/sweep/slurm.hpp"
#include "tools/views/report/assets.hpp"
#include "tools/views/sweep/parquet.hpp"
#include "tools/views/sweep/results_csv.hpp"
#include "tools/views/sweep/summary.hpp"
#include "tools/views/sweep/sweep_page.hpp"

namespace lockstep {
namespace {

constexpr std::array kSweepOptions{
    OptionSpec{"output", 'o', "DB", false,
               "The results: a SQLite database, made or gone on with. Points that are finished in "
               "it are not simulated again.",
               "-o results.db", PathUse::writes},
    kStackOption,
    OptionSpec{"jobs", 'j', "N", false,
               "Simulate this many points at once (default: one per core). The results are the "
               "same for any number.",
               "-j 8"},
    OptionSpec{"dry-run", 0, "", false,
               "Count the points and estimate the time, and between what it is nineteen times of "
               "twenty, from up to 32 of them that are tried; write nothing.",
               "--dry-run"},
    OptionSpec{"objective", 0, "NAME[:max|:min]", false,
               "List the best points by this metric or column (default: what the sweep file says, "
               "else mfu, or goodput of scenarios with \"run\").",
               "--objective price_usd"},
    OptionSpec{"top", 0, "N", false, "List this many (default: 10).", "--top 3"},
    OptionSpec{"csv", 0, "FILE", false,
               "Write all points as CSV too, when the sweep is complete; compressed if the name "
               "ends in .gz.",
               "--csv results.csv", PathUse::writes},
    OptionSpec{"report", 0, "FILE", false,
               "Write one self-contained HTML page when the sweep is complete: all points on "
               "parallel axes, fronts, the objective over each axis.",
               "--report sweep.html", PathUse::writes},
    OptionSpec{"reuse", 0, "DB", true,
               "Take answers from another sweep's results where they were made of the same "
               "scenario, presets and version.",
               "--reuse last-week.db", PathUse::reads},
    OptionSpec{
        "engine", 0, "local|slurm", false,
        "Where to compute: on this machine (the default), or as a Slurm job array whose tasks "
        "see this folder and this program; it is submitted, followed and collected.",
        "--engine slurm"},
    OptionSpec{
        "shards", 0, "N", false,
        "With --engine slurm and --print-parallel: cut the sweep into this many parts "
        "(default: so that each takes a core about five minutes, or one for each of --jobs).",
        "--shards 64"},
    OptionSpec{"partition", 0, "NAME", false, "With --engine slurm: as for sbatch.",
               "--partition cpu"},
    OptionSpec{"account", 0, "NAME", false, "With --engine slurm: as for sbatch.", "--account lab"},
    OptionSpec{"time", 0, "TIME", false,
               "With --engine slurm: the limit of a shard, as for sbatch.", "--time 30:00"},
    OptionSpec{"sbatch", 0, "OPTION", true,
               "With --engine slurm: any other option of sbatch. Tasks use as many cores as "
               "--cpus-per-task gives them.",
               "--sbatch=--cpus-per-task=8"},
    OptionSpec{"print-parallel", 0, "", false,
               "Print a command line for each part, for GNU parallel, xargs or another scheduler; "
               "`lockstep sweep collect FILE -o DB` brings the results together.",
               "--print-parallel --shards 64 | parallel -j 8"},
    OptionSpec{"shard", 0, "I/N", false,
               "Compute only part I of N, counted from 0, into a file of its own beside the "
               "database, to be collected. Nothing happens if the file is there.",
               "--shard 3/64"},
    OptionSpec{"format", 0, "table|json", false, "How to print the summary.", "--format json"},
    kFoldOption,
    kUnfoldOption,
    OptionSpec{"quiet", 'q', "", false, "Print nothing but errors.", "--quiet"},
    kPresetsOption,
};

constexpr std::array<std::string_view, 8> kSweepExamples{
    "lockstep sweep fabric-vs-parallelism -o results.db",
    "lockstep sweep fabric-vs-parallelism --dry-run",
    "lockstep sweep checkpoint-interval -o results.db --objective goodput",
    "lockstep sweep export results.db -o results.csv",
    "lockstep sweep my.json -o results.db --engine slurm --partition cpu --time 30:00",
    "lockstep sweep my.json -o results.db --print-parallel --shards 64 | parallel -j 8",
    "lockstep sweep collect my.json -o results.db",
    "sqlite3 -header -column results.db \"SELECT * FROM points WHERE status = 'ok' LIMIT 5\"",
};

constexpr std::array<std::string_view, 2> kSummaryFormats{"table", "json"};
constexpr std::array<std::string_view, 2> kEngines{"local", "slurm"};

constexpr CommandSpec kSweepSpec{
    .name = "sweep",
    .usage = "sweep FILE|NAME -o DB [options]",
    .summary = "Simulate many variants of a scenario into a database.",
    .about =
        "Reads a sweep file (scenarios/sweeps/README.md describes the format): a scenario, and "
        "axes of\n"
        "values that take their place in it. Simulates all combinations on all cores into a\n"
        "SQLite database with a column per axis and metric, and up to 5,000 whole answers. A\n"
        "sweep that was stopped goes on where it stood; a point that fails is recorded with its\n"
        "error.\n"
        "`lockstep sweep export DB` prints the results as CSV, -o results.parquet writes them as\n"
        "Parquet where libduckdb is (LOCKSTEP_DUCKDB names it); `lockstep sweep collect FILE -o "
        "DB`\n"
        "brings together what other machines have computed.",
    .positionals = 2,
    .options = kSweepOptions,
    .examples = kSweepExamples,
};

int all_cores() { return static_cast<int>(std::max(1U, std::thread::hardware_concurrency())); }

void write_csv(const std::string& database, const std::string& path) {
  const ResultsReader results(database);
  OutputFile file(path);
  export_csv(results, [&](const CsvText& line) { file.write(line.str()); });
  file.commit();
}

Exit export_results(const ParsedOptions& options, Console& console) {
  if (options.positionals.size() < 2) {
    throw UsageError(
        "lockstep sweep export: no database; usage: lockstep sweep export DB [-o CSV]");
  }
  const std::string& database = options.positionals[1];
  if (options.get("output").ends_with(".parquet")) {
    export_parquet(ResultsReader(database), options.get("output"));
    return Exit::ok;
  }
  if (options.has("output")) {
    write_csv(database, options.get("output"));
  } else {
    const ResultsReader results(database);
    export_csv(results, [&](const CsvText& line) { console.out << line.str(); });
  }
  return Exit::ok;
}

/// What the words before the options ask for.
struct SweepWords {
  std::string file;
  bool collects = false;
};
SweepWords words_of(const ParsedOptions& options) {
  const std::vector<std::string>& words = options.positionals;
  const bool collects = !words.empty() && words[0] == "collect";
  const std::size_t wanted = collects ? 2 : 1;
  if (words.size() < wanted) {
    throw UsageError(
        fmt::format("lockstep sweep: no sweep file; usage: lockstep {}", kSweepSpec.usage));
  }
  if (words.size() > wanted) {
    throw UsageError(fmt::format("lockstep sweep: one word too many: {}; usage: lockstep {}",
                                 in_quotes(words.back()), kSweepSpec.usage));
  }
  return {.file = words.back(), .collects = collects};
}

/// Options that only one way of computing takes.
void check_engine(const ParsedOptions& options, const std::string& engine) {
  if (engine == "slurm") return;
  for (const char* name : {"partition", "account", "time", "sbatch"}) {
    if (options.has(name)) {
      throw UsageError(fmt::format("lockstep sweep: --{} is for --engine slurm", name));
    }
  }
  if (options.has("shards") && !options.has("print-parallel")) {
    throw UsageError("lockstep sweep: --shards is for --engine slurm and --print-parallel");
  }
}

/// What would be taken for another format by its name, and is none.
void check_database_name(const std::string& name) {
  constexpr std::array<std::string_view, 5> kOtherFormats{".csv", ".csv.gz", ".parquet", ".json",
                                                          ".html"};
  for (const std::string_view ending : kOtherFormats) {
    if (!name.ends_with(ending)) continue;
    throw UsageError(fmt::format(
        "-o: found {}; allowed: the name of a database, such as results.db (--csv FILE writes CSV, "
        "--report FILE a page, lockstep sweep export results.db -o FILE CSV or Parquet)",
        in_quotes(name)));
  }
}

std::vector<std::uint32_t> checked_points(const Sweep& sweep, int jobs) {
  std::vector<std::uint32_t> numbers = points_of(sweep, jobs);
  if (!numbers.empty()) return numbers;
  throw InputError({.file = sweep.file,
                    .pointer = "/constraints",
                    .found = "none of " + std::to_string(sweep.candidates()) + " combinations",
                    .allowed = "constraints that at least one keeps",
                    .nearest = {}});
}

Exit show_summary(const SweepRun& run, const ParsedOptions& options, const std::string& format,
                  const SweepObjective& objective, const PresetStore& presets) {
  constexpr int kTop = 10, kMostTop = 1'000'000;
  const SweepSummary summary =
      summarise_sweep(run.sweep, run.database, run.numbers.size(), objective,
                      whole_number(options, "top", kTop, kMostTop));
  if (wants_report(options) && summary.ok + summary.failed == summary.points) {
    const std::optional<Behind> behind = behind_best(run.sweep, summary, presets);
    write_report(options, sweep_page(run.sweep, summary, sweep_basis(run.sweep, summary, presets),
                                     behind ? &*behind : nullptr));
  }
  if (!run.quiet) {
    const Answer answer = format == "json"
                              ? Answer(JsonText(summary_json(summary)))
                              : Answer::terminal(summary_table(summary, run.console.style));
    run.console.out << answer.str();
  }
  // Not one answer: what the points share is wrong.
  const bool useless = summary.ok == 0 && summary.failed == summary.points;
  if (useless)
    run.console.err << "all points failed; the first: " << terminal_line(summary.first_error)
                    << "\n";
  return useless ? Exit::bad_input : Exit::ok;
}

Exit run_sweep(const ParsedOptions& options, Console& console) {
  if (!options.positionals.empty() && options.positionals[0] == "export") {
    return export_results(options, console);
  }
  const SweepWords words = words_of(options);
  const std::string format = options.choice("format", kSummaryFormats);
  const std::string engine_name = options.choice("engine", kEngines);
  check_engine(options, engine_name);
  (void)wants_report(options);
  const int jobs = whole_number(options, "jobs", all_cores(), kMostJobs);
  const PresetStore presets(options.all("presets"));
  Sweep sweep = load_sweep(scenario_path(words.file, presets), options.get("stack"));
  sweep.folding = folding_of(options);
  const SweepObjective objective = read_objective(sweep, options.get("objective"), "--objective");
  const std::vector<std::uint32_t> numbers = checked_points(sweep, jobs);
  if (!numbers.empty()) {
    require_known_keys(sweep, PointMaker(sweep).make(numbers.front()).scenario, presets);
  }
  const SweepEngine engine(sweep, presets, jobs, options.all("reuse"));
  if (options.has("dry-run")) {
    print_estimate({sweep, engine, numbers, {}, false, console}, format, jobs);
    return Exit::ok;
  }
  if (!options.has("output")) {
    throw UsageError("lockstep sweep: nowhere to keep the results; allowed: -o results.db");
  }
  check_database_name(options.get("output"));
  const SweepRun all{sweep, engine, numbers, options.get("output"), options.has("quiet"), console};
  if (options.has("shard")) return run_shard(all, parse_shard(options.get("shard")));
  if (options.has("print-parallel")) {
    const int shards = whole_number(options, "shards", jobs, kMostShards);
    print_shard_commands(all, options, shards);
    return Exit::ok;
  }
  const Exit exit = words.collects           ? collect(all)
                    : engine_name == "slurm" ? sweep_by_slurm(all, options)
                                             : sweep_locally(all);
  if (exit == Exit::ok && options.has("csv")) write_csv(all.database, options.get("csv"));
  const Exit useful = show_summary(all, options, format, objective, presets);
  return exit == Exit::ok ? useful : exit;
}

constexpr Command kSweepCommand{&kSweepSpec, run_sweep};

}  // namespace

const Command& sweep_command() { return kSweepCommand; }

}  // namespace lockstep
