#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <ostream>
#include <sys/ioctl.h>
#include <thread>
#include <unistd.h>

#include "models/input/input_error.hpp"
#include "tools/lockstep/cli.hpp"
#include "tools/lockstep/output_file.hpp"
#include "tools/lockstep/shared_options.hpp"
#include "tools/lockstep/sweep/engine.hpp"
#include "tools/lockstep/sweep/local_sweep.hpp"
#include "tools/lockstep/sweep/objective.hpp"
#include "tools/lockstep/sweep/summary.hpp"

namespace lockstep {
namespace {

constexpr std::array kOptions{
    OptionSpec{"output", 'o', "DB", false,
               "The results: a SQLite database, made or gone on with. Points that are finished in "
               "it are not simulated again.",
               "-o results.db"},
    OptionSpec{"jobs", 'j', "N", false,
               "Simulate this many points at once (default: one per core). The results are the "
               "same for any number.",
               "-j 8"},
    OptionSpec{"dry-run", 0, "", false,
               "Count the points and estimate the time from a few of them; write nothing.",
               "--dry-run"},
    OptionSpec{"objective", 0, "NAME[:max|:min]", false,
               "List the best points by this metric or column (default: what the sweep file says, "
               "else mfu, or goodput of scenarios with \"run\").",
               "--objective price_usd"},
    OptionSpec{"top", 0, "N", false, "List this many (default: 10).", "--top 3"},
    OptionSpec{"csv", 0, "FILE", false,
               "Write all points as CSV too, when the sweep is complete; compressed if the name "
               "ends in .gz.",
               "--csv results.csv"},
    OptionSpec{"reuse", 0, "DB", true,
               "Take answers from another sweep's results where they were made of the same "
               "scenario, presets and version.",
               "--reuse last-week.db"},
    OptionSpec{"format", 0, "table|json", false, "How to print the summary.", "--format json"},
    OptionSpec{"quiet", 'q', "", false, "Print nothing but errors.", "--quiet"},
    kPresetsOption,
};

constexpr std::array<std::string_view, 5> kExamples{
    "lockstep sweep scenarios/sweeps/fabric-vs-parallelism.json -o results.db",
    "lockstep sweep scenarios/sweeps/fabric-vs-parallelism.json --dry-run",
    "lockstep sweep scenarios/sweeps/checkpoint-interval.json -o results.db --objective goodput",
    "lockstep sweep export results.db -o results.csv",
    "sqlite3 -header -column results.db \"SELECT * FROM points WHERE status = 'ok' LIMIT 5\"",
};

constexpr CommandSpec kSpec{
    .name = "sweep",
    .usage = "sweep FILE -o DB [options]",
    .summary = "Simulate many variants of a scenario into a database.",
    .about =
        "Reads a sweep file (scenarios/README.md describes the format): a scenario, and axes of\n"
        "values that take their place in it. Simulates all combinations on all cores and keeps\n"
        "every answer in a SQLite database, with a column per axis and metric. A sweep that was\n"
        "stopped goes on where it stood; a point that fails is recorded with its error.\n"
        "`lockstep sweep export DB` prints the results as CSV.",
    .positionals = 2,
    .options = kOptions,
    .examples = kExamples,
};

/// Columns of the terminal; kTextColumns where there is none.
int terminal_columns() {
  winsize size{};
  const bool known = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? std::clamp<int>(size.ws_col, 40, 400) : kTextColumns;
}

int all_cores() { return static_cast<int>(std::max(1U, std::thread::hardware_concurrency())); }

void write_csv(const std::string& database, const std::string& path) {
  const ResultsReader results(database);
  OutputFile file(path);
  export_csv(results, [&](const std::string& line) { file.write(line); });
  file.commit();
}

Exit export_results(const ParsedOptions& options, Console& console) {
  if (options.positionals.size() < 2) {
    throw UsageError(
        "lockstep sweep export: no database; usage: lockstep sweep export DB [-o CSV]");
  }
  const std::string& database = options.positionals[1];
  if (options.has("output")) {
    write_csv(database, options.get("output"));
  } else {
    const ResultsReader results(database);
    export_csv(results, [&](const std::string& line) { console.out << line; });
  }
  return Exit::ok;
}

/// How often one point in how many seconds.
void print_estimate(const ParsedOptions& options, const Sweep& sweep, const SweepEngine& engine,
                    const std::vector<std::uint32_t>& numbers, int jobs, Console& console) {
  constexpr double kLimitS = 3;
  const double each = engine.seconds_per_point(numbers, kLimitS);
  const double all = each * static_cast<double>(numbers.size()) / jobs;
  if (options.choice("format", std::array<std::string_view, 2>{"table", "json"}) == "json") {
    const nlohmann::ordered_json out{{"candidates", sweep.candidates()},
                                     {"points", numbers.size()},
                                     {"seconds_per_point", twelve_digits(each)},
                                     {"jobs", jobs},
                                     {"estimate_s", twelve_digits(all)}};
    console.out << out.dump(2) << "\n";
    return;
  }
  console.out << fmt::format("{}: {} points", sweep.file,
                             grouped(static_cast<double>(numbers.size())));
  if (numbers.size() < sweep.candidates()) {
    console.out << fmt::format(" of {} combinations keep the constraints",
                               grouped(static_cast<double>(sweep.candidates())));
  }
  console.out << fmt::format("\nabout {} at {} a point on {} {}\n", duration_text(all),
                             duration_text(each), jobs, jobs == 1 ? "core" : "cores");
}

Exit run(const ParsedOptions& options, Console& console) {
  if (options.positionals.empty()) {
    throw UsageError(fmt::format("lockstep sweep: no sweep file; usage: lockstep {}", kSpec.usage));
  }
  if (options.positionals[0] == "export") return export_results(options, console);
  if (options.positionals.size() > 1) {
    throw UsageError(fmt::format("lockstep sweep: one word too many: {}; usage: lockstep {}",
                                 in_quotes(options.positionals[1]), kSpec.usage));
  }
  const std::string format =
      options.choice("format", std::array<std::string_view, 2>{"table", "json"});
  const int jobs = whole_number(options, "jobs", all_cores(), kMostJobs);
  const int top = whole_number(options, "top", 10, 1'000'000);
  const Sweep sweep = load_sweep(options.positionals[0]);
  const SweepObjective objective = read_objective(sweep, options.get("objective"), "--objective");
  const PresetStore presets(options.all("presets"));
  const std::vector<std::uint32_t> numbers = points_of(sweep, jobs);
  if (numbers.empty()) {
    throw InputError({.file = sweep.file,
                      .pointer = "/constraints",
                      .found = "none of " + std::to_string(sweep.candidates()) + " combinations",
                      .allowed = "constraints that at least one keeps",
                      .nearest = {}});
  }
  const SweepEngine engine(sweep, presets, jobs, options.all("reuse"));
  if (options.has("dry-run")) {
    print_estimate(options, sweep, engine, numbers, jobs, console);
    return Exit::ok;
  }
  if (!options.has("output")) {
    throw UsageError("lockstep sweep: nowhere to keep the results; allowed: -o results.db");
  }
  const std::string database = options.get("output");
  const bool quiet = options.has("quiet");
  const SweepRun all{sweep, engine, numbers, database, quiet, console};
  const Exit exit = sweep_locally(all);
  if (exit == Exit::ok && options.has("csv")) write_csv(database, options.get("csv"));
  const SweepSummary summary = summarise_sweep(sweep, database, numbers.size(), objective, top);
  if (!quiet) {
    console.out << (format == "json" ? summary_json(summary).dump(2) + "\n"
                                     : summary_table(summary, console.style, terminal_columns()));
  }
  // Not one answer: what the points share is wrong.
  const bool useless = exit == Exit::ok && summary.ok == 0;
  if (useless) console.err << "all points failed; the first: " << summary.first_error << "\n";
  return useless ? Exit::bad_input : exit;
}

constexpr Command kCommand{&kSpec, run};

}  // namespace

const Command& sweep_command() { return kCommand; }

}  // namespace lockstep
