#include <array>
#include <chrono>
#include <fmt/format.h>
#include <optional>
#include <ostream>
#include <utility>

#include <nlohmann/json.hpp>

#include "models/base/number_text.hpp"
#include "models/base/output_file.hpp"
#include "sim/answer/comm_collective.hpp"
#include "sim/measured/command_formulas.hpp"
#include "sim/scenario/read_traffic.hpp"
#include "sim/scenario/scenario_file.hpp"
#include "sim/traffic/traffic_congestion.hpp"
#include "tools/console/ask_options.hpp"
#include "tools/console/assertion.hpp"
#include "tools/console/hash_draws.hpp"
#include "tools/console/shared_options.hpp"
#include "tools/console/work_budget.hpp"
#include "tools/lockstep/cli.hpp"
#include "tools/lockstep/vary/run_varied.hpp"
#include "tools/views/comm/collective_page.hpp"
#include "tools/views/comm/comm_collective_output.hpp"
#include "tools/views/comm/comm_traffic.hpp"
#include "tools/views/report/assets.hpp"
#include "tools/views/report/behind.hpp"
#include "tools/views/report/congestion_page.hpp"
#include "tools/views/report/input_tables.hpp"
#include "tools/views/run/claim_text.hpp"

namespace lockstep {
namespace {

constexpr std::array kCommOptions{
    OptionSpec{
        "op", 0, "NAME,...", false,
        "Ask without a scenario file: of these collectives, over all GPUs of the machine that "
        "--node or --cluster says.",
        "--op all_reduce --node dgx_h100 --nodes 16 --sizes \"1 MiB,1 GiB\""},
    OptionSpec{"sizes", 0, "SIZE,...", false,
               "With --op: these sizes (default: from 8 B to 8 GiB, each twice the last).",
               "--sizes 64KiB,1GiB"},
    OptionSpec{"node", 0, "NAME", false, "With --op: the server (lockstep list nodes).",
               "--node dgx_b200"},
    OptionSpec{"cluster", 0, "NAME", false,
               "With --op: a cluster that exists, instead of --node (lockstep list clusters).",
               "--cluster meta_24k_roce"},
    OptionSpec{"nodes", 0, "N", false, "With --op: how many servers (default: 1).", "--nodes 16"},
    OptionSpec{"gpus", 0, "N", false, "With --op: how many GPUs, instead of --nodes.",
               "--gpus 128"},
    OptionSpec{"fabric", 0, "NAME", false,
               "With --op: what joins the servers (lockstep list fabrics); else what suits them.",
               "--fabric fat_tree_ecmp"},
    OptionSpec{"set", 0, "PATH=VALUE", true,
               "Change a value of the scenario before it is read: a dotted path or a JSON pointer, "
               "and a JSON value or a plain string. "
               "A number without a unit is in s, B, B/s, FLOP/s or W.",
               "--set cluster.fabric.routing=spray --set traffic.0.size=\"1 GiB\""},
    kFormatOption,
    OptionSpec{
        "report", 0, "FILE", false,
        "Write a page (HTML): of traffic links by time, and how much slower every demand is than "
        "with its links to itself, and why; of collectives bandwidth and time over the size, and "
        "why NCCL chooses what it does; with --vary all points.",
        "--report congestion.html", PathUse::writes},
    OptionSpec{
        "vary", 0, "PATH=V1,V2,...", true,
        "The answer with each of these values of the scenario; given twice, with each pair. Of "
        "collectives a row for each operation, at its largest size.",
        "--vary cluster.fabric.leaf_oversubscription=1,2,4"},
    OptionSpec{"flows", 0, "FILE", false,
               "Write every message of the traffic as CSV: sender, receiver, bytes, start, end; "
               "compressed if the name ends in .gz.",
               "--flows flows.csv.gz", PathUse::writes},
    OptionSpec{"paths", 0, "FILE", false,
               "Write every link with its capacity and every message with its way and its times, "
               "for another simulator to run the same.",
               "--paths paths.txt", PathUse::writes},
    OptionSpec{
        "assert", 0, "EXPR", true,
        "Require a number of the JSON output's first level to keep a bound (>=, <=, >, <, ==); "
        "exit status 1 with a line that says by how much it missed. The bound is in the number's "
        "unit, or has one: 6500 ms, 70 GiB, 1.2 MW, 5 M USD, 40 %.",
        "--assert \"end_s<0.02\""},
    OptionSpec{"measured", 0, "FILE|NAME", true,
               "Take the times of collectives from profiles of this kind of card and network, as "
               "--profile of lockstep run does.",
               "--measured fabric.profile.json", PathUse::reads},
    OptionSpec{"profile", 0, "", false,
               "Print on standard error how long reading, topology, routes, simulation and report "
               "took.",
               "--profile"},
    kHashSeedsOption,
    OptionSpec{"jobs", 'j', "N", false,
               "With --hash-seeds: simulate this many draws at once (default: one per core). The "
               "output is the same for any number.",
               "-j 2"},
    kPresetsOption,
    kOutputOption,
};

constexpr std::array<std::string_view, 9> kCommExamples{
    "lockstep comm --op all_reduce --node dgx_h100 --nodes 16 --sizes 64MiB,1GiB",
    "lockstep comm allreduce-dgxh100",
    "lockstep comm permutation-8192",
    "lockstep comm checkpoint-beside-rings --report congestion.html",
    "lockstep comm incast-32 --flows flows.csv",
    "lockstep comm rings-64x64 --set traffic.0.as=messages",
    "lockstep comm all-to-all-256 --format json",
    "lockstep comm all-to-all-256 --hash-seeds 100",
    "lockstep comm alltoall-16-nodes --vary cluster.nodes=4,8,16",
};

constexpr CommandSpec kCommSpec{
    .name = "comm",
    .usage = "comm [FILE|NAME] [options]",
    .summary = "Collectives as nccl-tests prints them, or any traffic on a cluster's fabric.",
    .about =
        "Reads a scenario with \"traffic\" (a JSON file; scenarios/comm/README.md describes the\n"
        "format), routes every message over the fabric, shares the links by max-min fairness and\n"
        "prints completion times, achieved rates and the fullest links. With \"collective\" "
        "instead:\n"
        "a table as nccl-tests prints it, with NCCL's choice at every size and why. A question "
        "without\n"
        "a file, --op, is such a one.",
    .positionals = 1,
    .options = kCommOptions,
    .examples = kCommExamples,
};

/// Wall time of the parts of a run.
class LapTimes {
 public:
  void lap(std::string_view part) {
    const auto now = Clock::now();
    const std::chrono::duration<double, std::milli> took = now - last_;
    text_ += fmt::format("{}{} {:.1f} ms", text_.empty() ? "" : ", ", part, took.count());
    last_ = now;
  }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point last_ = Clock::now();
  std::string text_;
};

void write_file(const std::string& path, std::string_view text) {
  OutputFile file(path);
  file.write(text);
  file.commit();
}

/// Measured on one core of 3 GHz, on trees of three levels.
WorkEstimate work_of(const TrafficScenario& scenario) {
  constexpr double kSecondsPerMessage = 6e-6, kSecondsPerPath = 1.2e-8;
  constexpr double kBytesPerMessage = 700, kBytesPerCompletion = 48;
  TrafficExtent all;
  for (const TrafficEntry& entry : scenario.entries) {
    const TrafficExtent extent = extent_of(entry);
    all.messages += extent.messages;
    all.at_once += extent.at_once;
    all.paths += extent.paths;
  }
  return {.place = scenario.file + "#/traffic",
          .what = grouped(all.at_once) + " messages at once" +
                  (all.messages > all.at_once ? ", " + grouped(all.messages) + " in all" : ""),
          .seconds = kSecondsPerMessage * all.messages + kSecondsPerPath * all.paths,
          .bytes = kBytesPerMessage * all.at_once + kBytesPerCompletion * all.messages};
}

void refuse_measured(const ParsedOptions& options) {
  if (!options.has("measured")) return;
  throw UsageError("lockstep comm: --measured is about collectives, not traffic");
}

/// Throws UsageError for --jobs that nothing takes.
void check_jobs(const ParsedOptions& options) {
  if (options.has("jobs") && !options.has("hash-seeds")) {
    throw UsageError("lockstep comm: --jobs is for --hash-seeds");
  }
}

std::optional<HashAnswer> hash_of(const TrafficScenario& scenario, const TrafficReport& report,
                                  const ParsedOptions& options, Console& console) {
  const Cluster& cluster = scenario.cluster;
  const NicPorts ports = nic_ports(cluster.node);
  const HashDraws draws =
      hash_draws_of(options, scenario.file, cluster.fabric, cluster.nodes, ports);
  if (!is_hashed(cluster.fabric, cluster.nodes, ports)) return std::nullopt;
  return answer_of_draws(draws, times_of(report), console, [&scenario](int draw) {
    TrafficScenario drawn = scenario;
    drawn.cluster.fabric.hash_draw = draw;
    return times_of(simulate_traffic(drawn, 0));
  });
}

std::optional<HashAnswer> hash_of(const CollectiveStudy& study, const ParsedOptions& options,
                                  Console& console) {
  const Cluster& cluster = study.cluster;
  const NicPorts ports = nic_ports(cluster.node);
  const HashDraws draws = hash_draws_of(options, study.file, cluster.fabric, cluster.nodes, ports);
  if (!is_hashed(cluster.fabric, cluster.nodes, ports)) return std::nullopt;
  if (!study.group.leaves_domains()) {
    if (!options.has("hash-seeds")) return std::nullopt;
    throw InputError({.file = study.file,
                      .pointer = "/collective",
                      .found = "a group in one NVLink domain, where nothing is hashed",
                      .allowed = "for --hash-seeds, a group in several",
                      .nearest = {}});
  }
  return answer_of_draws(draws, times_with_draw(study, draws.first), console,
                         [&study](int draw) { return times_with_draw(study, draw); });
}

constexpr std::size_t kLinks = 10;     // that a report names
constexpr std::size_t kAlike = 4'096;  // that a terminal's counts where they are alike

JsonCursor study_read(const std::string& file, const std::string& text,
                      const std::vector<std::string>& sets) {
  JsonCursor root = JsonCursor::parse(file, text, JsonStyle::plain, sets);
  refuse_other_document(root, "comm", "a scenario of traffic or collectives");
  return root;
}

/// The answers over --vary.
Exit run_varied_comm(const std::string& file, const std::string& text, const PresetStore& presets,
                     const ParsedOptions& options, Console& console) {
  constexpr std::array<std::string_view, 5> kOfOnePoint{"flows", "paths", "profile", "assert",
                                                        "hash-seeds"};
  const auto answer_to = [&](const std::vector<std::string>& point, const auto&) {
    std::vector<std::string> sets = options.all("set");
    sets.insert(sets.end(), point.begin(), point.end());
    const JsonCursor root = study_read(file, text, sets);
    if (root.find("collective")) {
      CollectiveStudy study = run_collective_study(root, presets, options.all("measured"));
      study.hash = hash_of(study, options, console);
      return collective_json(study);
    }
    refuse_measured(options);
    const TrafficScenario scenario = read_traffic(root, presets);
    check_work_memory(work_of(scenario), memory_limit());
    TrafficReport report = simulate_traffic(scenario, kLinks);
    add_alone(scenario, report);
    return traffic_json(scenario, report, hash_of(scenario, report, options, console));
  };
  return answer_varied({file, written_in(study_read(file, text, options.all("set"))), presets},
                       answer_to, kOfOnePoint, "comm", options, console);
}

/// What the page of a traffic scenario says beside its report.
AnswerBasis traffic_basis(const TrafficScenario& scenario, const JsonCursor& root,
                          const PresetStore& presets) {
  std::vector<NamedWords> simulated = cluster_words(scenario.cluster);
  simulated.push_back(
      {"Links", percent_text(scenario.efficiency) + " of their rate is reached by payload"});
  return {.simulated = std::move(simulated),
          .written = written_in(root),
          .assumptions = scenario.assumptions,
          .presets = &presets,
          .named = presets_of(scenario.cluster, presets)};
}

Exit run_traffic(const JsonCursor& root, const PresetStore& presets, const ParsedOptions& options,
                 Console& console) {
  const std::string format = options.choice("format", kFormats);
  const std::vector<Assertion> assertions = parse_assertions(options.all("assert"));

  if (options.has("report")) (void)chart_library();
  LapTimes laps;
  const TrafficScenario scenario = read_traffic(root, presets);
  check_work_memory(work_of(scenario), memory_limit());
  announce_work(work_of(scenario), console.err);
  laps.lap("read");
  TrafficNetwork network(scenario.cluster, scenario.efficiency);
  laps.lap("topology");
  TrafficSimulation simulation(scenario, std::move(network));
  laps.lap("routes");
  std::optional<TrafficCongestion> congestion;
  if (options.has("report")) congestion.emplace(simulation);
  simulation.run();
  laps.lap("simulate");
  TrafficReport report = simulation.report(kLinks);
  add_alone(scenario, report);
  const std::optional<HashAnswer> hash = hash_of(scenario, report, options, console);

  const bool claims = scenario.expect && !scenario.expect->claim.empty();
  const bool judged = format == "json" || !assertions.empty() || claims || congestion;
  nlohmann::ordered_json json = judged ? traffic_json(scenario, report, hash) : nullptr;
  std::vector<std::string> misses = all_missed(assertions, json);
  const auto claim = judge_claim(scenario.expect, json, misses);
  if (congestion) {
    const Behind behind(
        scenario.file,
        explained_command(CommandAnswer::traffic, json, root.json(), &scenario.cluster.node),
        presets);
    write_file(options.get("report"),
               congestion_page(congestion->report(report), traffic_basis(scenario, root, presets),
                               &behind, claim.get()));
  }
  if (options.has("flows")) write_file(options.get("flows"), flows_csv(simulation).str());
  if (options.has("paths")) write_file(options.get("paths"), paths_text(simulation));
  const auto table = [&] {
    const TextStyle style = output_style(options, console);
    report.links = simulation.report(kAlike).links;
    return traffic_table(scenario, report, style, hash) + claim_text(claim.get(), style);
  };
  write_output(format == "json"  ? Answer(JsonText(json))
               : format == "csv" ? Answer(traffic_csv(report, hash))
                                 : Answer::terminal(table()),
               options, console);
  laps.lap("report");
  if (options.has("profile")) console.err << laps.text() << "\n";
  return report_misses(misses, console);
}

Exit run_collectives(const JsonCursor& root, const PresetStore& presets,
                     const ParsedOptions& options, Console& console) {
  for (const char* traffic_only : {"flows", "paths", "profile"}) {
    if (!options.has(traffic_only)) continue;
    throw UsageError(
        fmt::format("lockstep comm: --{} is about traffic, not collectives", traffic_only));
  }
  const std::string format = options.choice("format", kFormats);
  const std::vector<Assertion> assertions = parse_assertions(options.all("assert"));
  const bool reports = wants_report(options);
  CollectiveStudy study = run_collective_study(root, presets, options.all("measured"));
  study.hash = hash_of(study, options, console);
  const nlohmann::ordered_json json =
      format == "json" || !assertions.empty() || reports ? collective_json(study) : nullptr;
  const std::vector<std::string> misses = all_missed(assertions, json);
  if (reports) {
    const Behind behind(
        study.file,
        explained_command(CommandAnswer::collectives, json, root.json(), &study.cluster.node),
        presets);
    write_report(options, collective_page(study, written_in(root), &behind));
  }
  write_output(format == "json" ? Answer(JsonText(json))
               : format == "csv"
                   ? Answer(collective_csv(study))
                   : Answer::terminal(collective_table(study, output_style(options, console))),
               options, console);
  return report_misses(misses, console);
}

Exit answer_comm(const CommandInput& input, const PresetStore& presets,
                 const ParsedOptions& options, Console& console) {
  const auto& [file, text] = input;
  check_jobs(options);
  const std::vector<std::string> sets = options.all("set");
  if (options.has("vary")) return run_varied_comm(file, text, presets, options, console);
  const JsonCursor root = study_read(file, text, sets);
  if (root.find("collective")) return run_collectives(root, presets, options, console);
  refuse_measured(options);
  return run_traffic(root, presets, options, console);
}

Exit run_comm(const ParsedOptions& options, Console& console) {
  if (options.has("sizes") && !options.has("op")) {
    throw UsageError("--sizes: found it without --op; allowed: beside --op");
  }
  if (const std::optional<Ask> machine = ask_of(options, "op")) {
    const PresetStore presets(options.all("presets"));
    const std::string text =
        ask_collective(*machine, options.get("op"), options.get("sizes"), presets);
    return answer_comm({std::string(kAskedFile), text}, presets, options, console);
  }
  return answer_first_word(comm_command(), "scenario file", options, console);
}

constexpr Command kCommCommand{&kCommSpec, run_comm, read_scenario_input, answer_comm};

}  // namespace

const Command& comm_command() { return kCommCommand; }

}  // namespace lockstep
