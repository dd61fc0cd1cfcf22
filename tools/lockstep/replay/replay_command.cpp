#include <array>
#include <chrono>
#include <fmt/format.h>
#include <optional>
#include <ostream>
#include <utility>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/number_text.hpp"
#include "models/base/output_file.hpp"
#include "models/collectives/algorithms.hpp"
#include "sim/measured/device_name.hpp"
#include "sim/measured/trace_what_if.hpp"
#include "sim/search/vary_axes.hpp"
#include "sim/trace/trace_builder.hpp"
#include "tools/console/assertion.hpp"
#include "tools/console/hash_draws.hpp"
#include "tools/console/shared_options.hpp"
#include "tools/lockstep/cli.hpp"
#include "tools/lockstep/replay/replay_loggops.hpp"
#include "tools/lockstep/replay/replayed.hpp"
#include "tools/lockstep/replay/trace_asked.hpp"
#include "tools/lockstep/vary/run_varied.hpp"
#include "tools/views/replay/replay_output.hpp"
#include "tools/views/replay/replay_page.hpp"
#include "tools/views/report/assets.hpp"
#include "tools/views/report/input_tables.hpp"

namespace lockstep {
namespace {

constexpr std::array kReplayOptions{
    OptionSpec{"node", 0, "NAME", false, "Node preset to replay on; rank r is GPU r of them.",
               "--node dgx_h100"},
    OptionSpec{"nodes", 0, "N", false, "How many; else as many as the ranks need.", "--nodes 128"},
    OptionSpec{"fabric", 0, "NAME", false,
               "Fabric preset between them; else the one that such nodes usually have.",
               "--fabric fat_tree_2_to_1"},
    OptionSpec{"cluster", 0, "FILE", false,
               "Take the cluster from this scenario; --node, --nodes and --fabric change it.",
               "--cluster llama3-405b-16k", PathUse::reads},
    OptionSpec{"from", 0, "chakra|chakra-json|kineto|goal|pytorch|simai|aicb|nsys|goal-bin", false,
               "Format of the files; else what they look like.", "--from chakra-json"},
    OptionSpec{"groups", 0, "FILE", false,
               "Ranks of the process groups, as ASTRA-sim takes them ({\"1\": [0, 1]}), for Chakra "
               "traces that do not say; else comm_groups.json beside them.",
               "--groups comm_groups.json", PathUse::reads},
    OptionSpec{
        "step", 0, "N|all", false,
        "The step of a profiler's trace that is replayed (ProfilerStep, or an NVTX range such as "
        "\"step 16\"), or all of the recording; "
        "else the median step.",
        "--step 16"},
    OptionSpec{"as-recorded", 0, "", false,
               "Calls of a recording keep their recorded length, waits for other ranks in it, and "
               "cost nothing anew.",
               "--as-recorded"},
    OptionSpec{
        "recorded-on", 0, "GPU", false,
        "GPU preset that the trace was recorded on: durations are scaled to the GPU of the "
        "cluster, products and attention by what large products reach on either card (products "
        "whose shapes are known by the roofline), other kernels by memory bandwidth, copies by "
        "PCIe; none below the shortest kernel of either card. The host keeps its time.",
        "--recorded-on a100_sxm4_80gb"},
    OptionSpec{
        "loggops", 0, "L=NS,o=NS,g=NS,G=NS,O=NS,S=BYTES", false,
        "Run a GOAL schedule by the LogGOPS model, as LogGOPSim does, instead of on a cluster: "
        "latency, overhead and gap of a message, gap and overhead of a byte, in nanoseconds, and "
        "the largest message that is sent eagerly. What is left out is as LogGOPSim has it: 2500, "
        "1500, 1000, 6, 0, 65535. Receives may be from anybody and of any tag (-1).",
        "--loggops L=2500,o=1500,g=1000,G=0.02"},
    OptionSpec{"vary", 0, "PATH=V1,V2,...", true,
               "The replay with each of these values of the cluster, as a table with bars; given "
               "twice, with each pair.",
               "--vary cluster.fabric=rail_optimised,fat_tree_2_to_1"},
    OptionSpec{"algorithm", 0, "NAMES", false,
               "Choose collectives' algorithms among these only (NCCL_ALGO), or all but those "
               "after '^'.",
               "--algorithm ring,tree"},
    OptionSpec{"protocol", 0, "simple|ll|ll128,...", false, "The same of protocols (NCCL_PROTO).",
               "--protocol simple"},
    kFormatOption,
    OptionSpec{
        "trace", 0, "FILE", false,
        "Write the timeline as Chrome Trace JSON, a process per rank; compressed if the name "
        "ends in .gz.",
        "--trace replay.json.gz", PathUse::writes},
    OptionSpec{"report", 0, "FILE", false,
               "Write one self-contained HTML page: against the recording, where each rank's time "
               "goes, the longest collectives; with --vary all points.",
               "--report replay.html", PathUse::writes},
    OptionSpec{
        "assert", 0, "EXPR", true,
        "Require a number of the JSON output's first level to keep a bound (>=, <=, >, <, ==); "
        "exit status 1 with a line that says by how much it missed. The bound is in the number's "
        "unit, or has one: 6500 ms, 70 GiB, 1.2 MW, 5 M USD, 40 %.",
        "--assert \"step_s<0.5\""},
    kHashSeedsOption,
    OptionSpec{"jobs", 'j', "N", false,
               "With --hash-seeds: replay this many draws at once (default: one per core). The "
               "output is the same for any number.",
               "-j 2"},
    OptionSpec{"profile", 0, "", false,
               "Print on standard error how long reading and replaying took.", "--profile"},
    kPresetsOption,
    kOutputOption,
};

constexpr std::array<std::string_view, 9> kReplayExamples{
    "lockstep replay traces/ --node dgx_h100",
    "lockstep replay step.0.et step.1.et --node dgx_h100 --fabric fat_tree_2_to_1",
    "lockstep replay rank*.json.gz --node dgx_h200 --recorded-on h100_sxm5_80gb --format json",
    "lockstep replay et_0.json kineto_0.json --node dgx_b200 --recorded-on h100_sxm5_80gb",
    "lockstep replay traces/ --node dgx_h100 --vary cluster.fabric=rail_optimised,fat_tree_2_to_1",
    "lockstep replay step.goal --cluster llama3-405b-16k",
    "lockstep replay schedule.bin --node dgx_h100",
    "lockstep replay schedule.bin --loggops L=2500,o=1500,g=1000,G=0.02",
    "lockstep replay traces/ --node dgx_h100 --algorithm ring --trace replay.json.gz",
};

constexpr CommandSpec kReplaySpec{
    .name = "replay",
    .usage = "replay TRACE... [options]",
    .summary = "Run a step that was recorded elsewhere on a cluster of your choice.",
    .about =
        "Reads a trace, one file a rank or a folder of them: Chakra execution traces (protobuf or\n"
        "JSON), traces of the PyTorch profiler (Kineto), the same beside PyTorch's execution "
        "traces\n"
        "(et_0.json and kineto_0.json: two files a rank), SQLite exports of Nsight Systems, a "
        "GOAL\n"
        "schedule (text, or as txt2bin packs it), or a workload of SimAI or AICB. Every rank runs "
        "its nodes as their "
        "dependencies\n"
        "and streams allow, with the recorded durations; collectives and messages cost what they\n"
        "cost on this cluster and share its links.\n"
        "Traces that PyTorch recorded lack dependencies between kernels of a stream, Kineto's and\n"
        "Nsight's have none: they are added by the order of starts, which the output says. With\n"
        "execution traces the host's launches and waits, and tensors that go from stream to\n"
        "stream, order kernels as well.\n"
        "A profiler's trace with ProfilerStep marks is cut to its median step. Ranks that were "
        "not\n"
        "recorded are copies of the nearest one that was, and communication whose call is not "
        "told\n"
        "keeps its recorded length; the output says both, and how long the recording took.",
    .positionals = 1'000'000,
    .options = kReplayOptions,
    .examples = kReplayExamples,
};

void read_names(const ParsedOptions& options, std::string_view option,
                std::span<const std::string_view> names, NameFilter& out) {
  if (!options.has(option)) return;
  const std::string text = options.get(option);
  if (!parse_name_filter(text, names, out)) return;
  throw UsageError(
      fmt::format("--{}: found {}; allowed: names with commas, all but those after '^', of {}",
                  option, in_quotes(text), listed(names)));
}

std::optional<CollectiveOptions> collective_options(const ParsedOptions& options) {
  if (!options.has("algorithm") && !options.has("protocol")) return std::nullopt;
  CollectiveOptions out;
  std::vector<std::string_view> algorithms;
  for (const CollectiveAlgorithm& row : collective_algorithms()) algorithms.push_back(row.name);
  read_names(options, "algorithm", algorithms, out.algorithms);
  read_names(options, "protocol", kProtocols, out.protocols);
  return out;
}

/// Of a part of the work, for --profile.
class Stopwatch {
 public:
  std::string lap(std::string_view part, std::size_t nodes) {
    const auto now = std::chrono::steady_clock::now();
    const std::chrono::duration<double> took = now - last_;
    last_ = now;
    return fmt::format("{} {:.3f} s, {:.2f} million nodes/s\n", part, took.count(),
                       static_cast<double>(nodes) / took.count() * 1e-6);
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

/// What was scaled as products for want of anything that says what it is.
void note_untold(ReplayStudy& study) {
  constexpr double kNoticed = 0.01;
  const KernelBounds& all = study.what_if->recorded;
  const double share = study.what_if->untold / (all.launch + all.gpu);
  if (!(share > kNoticed)) return;
  study.trace.notes.push_back(fmt::format(
      "{} of the kernels' time is of nodes whose names and sizes do not say what they do, as where "
      "a node is a whole pass: scaled as matrix products, though part of it may move data",
      percent_text(share)));
}

/// Without --recorded-on durations stay, whatever card the cluster has.
void note_other_card(Trace& trace, const GpuSpec& gpu) {
  if (trace.device.empty()) {
    trace.notes.push_back(
        "kernels take as long as where they were recorded, on a card that the recording does not "
        "name: --recorded-on scales them to " +
        gpu.name);
    return;
  }
  const std::string chip = chip_of(trace.device), own = chip_of(gpu.name);
  if (chip.empty() || own.empty() || chip == own) return;
  trace.notes.push_back(
      fmt::format("kernels take as long as on {}, where they were recorded, and "
                  "not as on {}: --recorded-on scales them",
                  in_quotes(trace.device), gpu.name));
}

/// The replay with each draw of the hashes that is asked for; nothing where they decide nothing.
std::optional<HashAnswer> hash_of(const ReplayStudy& study, const TraceMatches& matches,
                                  const TraceReplayOptions& how, const ParsedOptions& options,
                                  Console& console) {
  const Cluster& cluster = study.cluster;
  const NicPorts ports = nic_ports(cluster.node);
  const HashDraws draws =
      hash_draws_of(options, study.trace.files.front(), cluster.fabric, cluster.nodes, ports);
  if (!is_hashed(cluster.fabric, cluster.nodes, ports)) return std::nullopt;
  const auto numbers = [](const TraceReplay& replay) {
    return std::vector{to_seconds(replay.end).base_units()};
  };
  return answer_of_draws(draws, numbers(study.replay), console, [&](int draw) {
    Cluster drawn = cluster;
    drawn.fabric.hash_draw = draw;
    return numbers(replay_trace(study.trace, matches, drawn, {.collectives = how.collectives}));
  });
}

/// The step where all that a recording lets be waited for is.
std::optional<StepTime> longest_of(const Trace& trace, const Cluster& cluster,
                                   const TraceReplayOptions& how) {
  if (trace.possible_waits.empty()) return std::nullopt;
  const Trace waits = with_possible_waits(trace);
  return replay_trace(waits, match(waits), cluster, {.collectives = how.collectives}).end;
}

/// What the page of the replay says that it rests on.
AnswerBasis replay_basis(const ReplayStudy& study, const ParsedOptions& options,
                         const PresetStore& presets) {
  const TraceCluster where(trace_cluster_asked(options), presets);
  AnswerBasis basis{.simulated = cluster_words(study.cluster),
                    .written = written_in(where.written(study.trace.ranks)),
                    .assumptions = study.cluster.assumptions,
                    .presets = &presets,
                    .named = presets_of(study.cluster, presets)};
  basis.simulated.insert(basis.simulated.begin(), NamedWords{"Trace", files_words(study)});
  const bool told = options.has("recorded-on");
  const std::string card =
      told ? presets.gpu(preset_option(options, "recorded-on", "gpus", presets)).name
           : study.trace.device;
  if (!card.empty()) basis.simulated.push_back({"Recorded on", card});
  if (told) basis.named.emplace_back("gpus", card);
  return basis;
}

/// The trace on the card that it is replayed on, and what is to be known of that.
void read_onto_card(const ParsedOptions& options, const PresetStore& presets,
                    const TraceCluster& where, ReplayStudy& study) {
  if (!options.has("recorded-on")) {
    study.trace = read_trace(trace_asked(options), where.gpu(), where.ranks());
    note_other_card(study.trace, where.gpu());
    return;
  }
  const GpuSpec& recorded = presets.gpu(preset_option(options, "recorded-on", "gpus", presets));
  study.trace = read_trace(trace_asked(options), recorded, where.ranks());
  check_device(study.trace.files.front(), study.trace.device, recorded.name, "--recorded-on",
               presets, study.trace.notes);
  if (study.trace.device.empty()) {
    study.trace.notes.push_back("the recording does not name its card; --recorded-on says " +
                                recorded.name);
  }
  study.what_if = scale_to_gpu(study.trace, recorded, where.gpu());
  if (recorded.name == where.gpu().name) return;
  study.trace.notes.push_back(fmt::format(
      "the step on {} has no interval: no step recorded on both cards says how far kernels "
      "scaled from {} err",
      where.gpu().name, recorded.name));
  note_untold(study);
}

struct TimedStudy {
  ReplayStudy study;
  std::string profile;  ///< how long reading and replaying took
};

/// The replay on the cluster that options say, with `changes` to it.
TimedStudy replayed(const ParsedOptions& options, const PresetStore& presets,
                    const std::vector<std::string>& changes, Console& console) {
  const TraceCluster where(trace_cluster_asked(options), presets, changes);
  const TraceReplayOptions how{.collectives = collective_options(options),
                               .record_times = options.has("trace")};
  Stopwatch watch;
  TimedStudy out{.study = {}, .profile = {}};
  ReplayStudy& study = out.study;
  read_onto_card(options, presets, where, study);
  study.cluster = where.cluster(study.trace.ranks);
  out.profile = watch.lap("read", study.trace.size());
  const TraceMatches matches = match(study.trace);
  out.profile += watch.lap("match", study.trace.size());
  study.replay = replay_trace(study.trace, matches, study.cluster, how);
  study.longest = longest_of(study.trace, study.cluster, how);
  out.profile += watch.lap("replay", study.trace.size());
  study.hash = hash_of(study, matches, how, options, console);
  return out;
}

/// The replay with each of the values of --vary.
Exit answer_varied_replay(const ParsedOptions& options, const PresetStore& presets,
                          Console& console) {
  constexpr std::array<std::string_view, 5> kOfOneReplay{"trace", "assert", "hash-seeds", "jobs",
                                                         "profile"};
  for (const VaryAxis& axis : parse_axes(options.all("vary"))) {
    if (axis.path.starts_with("cluster.") || axis.path.starts_with("/cluster/")) continue;
    throw UsageError(fmt::format(
        "--vary: found {}; allowed: a value of the cluster, such as cluster.fabric=rail_optimised",
        in_quotes(axis.path)));
  }
  const auto answer_to = [&](const std::vector<std::string>& point, const auto&) {
    return replay_json(replayed(options, presets, point, console).study);
  };
  WrittenScenario written;
  if (options.has("node") || options.has("cluster")) {
    // Without a count of nodes only the trace says how many there are.
    const TraceCluster where(trace_cluster_asked(options), presets);
    if (where.ranks() > 0) written = written_in(where.written(where.ranks()));
  }
  return answer_varied({options.positionals.front(), written, presets}, answer_to, kOfOneReplay,
                       "replay", options, console);
}

Exit run_replay(const ParsedOptions& options, Console& console) {
  if (options.positionals.empty()) {
    throw UsageError(
        fmt::format("lockstep replay: no trace; usage: lockstep {}", kReplaySpec.usage));
  }
  if (options.has("loggops")) return answer_loggops(options, console);
  const PresetStore presets(options.all("presets"));
  if (options.has("vary")) return answer_varied_replay(options, presets, console);
  if (options.has("jobs") && !options.has("hash-seeds")) {
    throw UsageError("lockstep replay: --jobs is for --hash-seeds");
  }
  const std::string format = options.choice("format", kFormats);
  const bool reports = wants_report(options);
  const std::vector<Assertion> assertions = parse_assertions(options.all("assert"));
  const auto [study, profile] = replayed(options, presets, {}, console);
  const nlohmann::ordered_json answer =
      format == "json" || !assertions.empty() ? replay_json(study) : nullptr;
  const std::vector<std::string> misses = all_missed(assertions, answer);
  if (options.has("trace")) {
    OutputFile file(options.get("trace"));
    write_replay_timeline(file, study);
    file.commit();
  }
  if (reports) {
    write_report(options, replay_page(study, replay_basis(study, options, presets)));
  }
  write_output(format == "json" ? Answer(JsonText(answer))
               : format == "csv"
                   ? Answer(replay_csv(study))
                   : Answer::terminal(replay_table(study, output_style(options, console))),
               options, console);
  if (options.has("profile")) console.err << profile;
  return report_misses(misses, console);
}

constexpr Command kReplayCommand{&kReplaySpec, run_replay};

}  // namespace

ReplayStudy replayed_study(const ParsedOptions& options, const PresetStore& presets,
                           Console& console) {
  return replayed(options, presets, {}, console).study;
}

const Command& replay_command() { return kReplayCommand; }

}  // namespace lockstep
