#include "tools/lockstep/queue/import_queue.hpp"

#include <cstddef>
#include <filesystem>
#include <fmt/format.h>
#include <optional>
#include <ostream>
#include <string>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/input_file.hpp"
#include "models/base/number_text.hpp"
#include "models/base/output_file.hpp"
#include "models/base/write_json.hpp"
#include "sim/scenario/kueue_import.hpp"
#include "sim/scenario/openb_trace.hpp"
#include "sim/scenario/read_cluster.hpp"
#include "sim/scenario/read_filling.hpp"
#include "sim/scenario/slurm_import.hpp"

namespace lockstep {
namespace {

constexpr std::size_t kImportLimit = std::size_t{1} << 30;  // bytes: millions of jobs
constexpr std::string_view kUsualNode = "dgx_h100";

std::optional<SlurmFile> file_of(const ParsedOptions& options, std::string_view option) {
  if (!options.has(option)) return std::nullopt;
  const std::string path = options.get(option);
  return SlurmFile{.name = path, .text = read_maybe_gzip(path, kImportLimit)};
}

/// "site.json" -> "site.jobs.csv", beside it.
std::filesystem::path jobs_path(const std::string& scenario) {
  std::filesystem::path out(scenario);
  return out.replace_extension(".jobs.csv");
}

std::string node_of(const ParsedOptions& options, const PresetStore& presets) {
  const std::string node = options.has("node") ? options.get("node") : std::string(kUsualNode);
  if (presets.has("nodes", node)) return node;
  const std::vector<std::string> names = presets.names("nodes");
  throw UsageError(fmt::format("--node: found {}; allowed: {}{}", in_quotes(node), listed(names),
                               did_you_mean(node, names)));
}

ImportedSite slurm_site(const ParsedOptions& options, const std::string& node,
                        const std::string& trace, const PresetStore& presets) {
  if (options.has("nodes")) throw UsageError("--nodes is of import --kueue");
  const SlurmFiles files{.conf = *file_of(options, "slurm"),
                         .topology = file_of(options, "topology"),
                         .accounting = file_of(options, "accounting"),
                         .squeue = file_of(options, "squeue"),
                         .sacctmgr = file_of(options, "sacctmgr"),
                         .qos = file_of(options, "qos")};
  return import_slurm(files, node, trace, presets);
}

ImportedSite kueue_site(const ParsedOptions& options, const std::string& node,
                        const std::string& trace, const PresetStore& presets) {
  for (const std::string_view option :
       {"slurm", "topology", "accounting", "squeue", "sacctmgr", "qos"}) {
    if (options.has(option)) {
      throw UsageError(fmt::format("--{} is of import --slurm, not beside --kueue", option));
    }
  }
  KueueSource source{.manifests = *file_of(options, "kueue"), .node = node, .trace = trace};
  if (options.has("nodes")) source.nodes = whole_number(options, "nodes", 1, kMaxNodes);
  return import_kueue(source, presets);
}

/// The nodes and pods of Alibaba's openb as a document with "filling".
Exit import_openb(const ParsedOptions& options, Console& console) {
  for (const std::string_view option : {"openb-nodes", "openb-pods"}) {
    if (!options.has(option)) {
      throw UsageError(fmt::format("lockstep queue import: no --{} beside the other", option));
    }
  }
  for (const std::string_view option :
       {"slurm", "topology", "accounting", "squeue", "sacctmgr", "qos", "kueue", "node", "nodes"}) {
    if (options.has(option)) {
      throw UsageError(fmt::format("--{} is not of import --openb-nodes", option));
    }
  }
  const auto text = [&](std::string_view option) {
    return read_maybe_gzip(options.get(option), kImportLimit);
  };
  FillingSpec spec;
  read_openb_nodes(options.get("openb-nodes"), text("openb-nodes"), spec.nodes);
  read_openb_pods(options.get("openb-pods"), text("openb-pods"), spec.pods);
  const auto rows = [](std::size_t count, const char* what) {
    return counted(static_cast<double>(count), what);
  };
  const std::string taken = fmt::format("{} and {} taken", rows(spec.nodes.size(), "node"),
                                        rows(spec.pods.size(), "pod"));
  unite_shapes(spec.nodes);
  unite_shapes(spec.pods);
  const std::string document = write_json(filling_document(spec), 2) + "\n";
  (void)read_filling(JsonCursor::parse(options.get("openb-pods"), document));
  write_output(Answer::file(document), options, console);
  console.err << terminal_text(
      fmt::format("{}, {} of nodes, {} of pods; lockstep queue fill fills them\n", taken,
                  rows(spec.nodes.size(), "kind"), rows(spec.pods.size(), "kind")));
  return Exit::ok;
}

/// The file that jobs would have come from.
std::string jobs_source(const ParsedOptions& options) {
  for (const std::string_view option : {"accounting", "squeue", "slurm"}) {
    if (options.has(option)) return options.get(option);
  }
  return options.get("kueue");
}

}  // namespace

Exit import_queue(const ParsedOptions& options, Console& console) {
  if (options.has("openb-nodes") || options.has("openb-pods")) {
    return import_openb(options, console);
  }
  const bool kueue = options.has("kueue");
  if (!options.has("slurm") && !kueue) {
    throw UsageError(
        "lockstep queue import: no --slurm slurm.conf, no --kueue FILE.yaml and no "
        "--openb-nodes FILE");
  }
  const std::string path = options.has("output") ? options.get("output") : "-";
  if (path == "-" || path.ends_with(".gz")) {
    throw UsageError(
        "lockstep queue import: no file for the scenario, beside which its jobs go; allowed: -o "
        "site.json");
  }
  const PresetStore presets(options.all("presets"));
  const std::string node = node_of(options, presets);
  const std::filesystem::path jobs = jobs_path(path);
  const std::string trace = jobs.filename().string();
  const ImportedSite site =
      kueue ? kueue_site(options, node, trace, presets) : slurm_site(options, node, trace, presets);
  for (const std::string& note : site.notes) console.err << terminal_text(note) << "\n";
  const bool drawn = kueue && site.jobs.empty();
  if (site.taken == 0 && !drawn) {
    throw InputError({.file = jobs_source(options),
                      .pointer = {},
                      .found = "no job to take",
                      .allowed = kueue ? "Workloads that have ended, or say how long they may run"
                                       : "jobs by --accounting (sacct -P) or --squeue (squeue "
                                         "--json)",
                      .nearest = {}});
  }
  if (!drawn) {
    OutputFile out(jobs.string());
    out.write(site.jobs);
    out.commit();
  }
  write_output(Answer::file(site.scenario), options, console);
  if (drawn) {
    console.err << terminal_text(
        fmt::format("drawn jobs; lockstep run {} has their waits\n", path));
    return Exit::ok;
  }
  const std::string omitted =
      site.left_out.count() == 0 ? std::string() : fmt::format(" ({})", site.left_out.names());
  console.err << terminal_text(fmt::format(
      "{} taken, {} left out{}; lockstep run {} replays them\n",
      counted(static_cast<double>(site.taken), "job"), site.left_out.count(), omitted, path));
  return Exit::ok;
}

}  // namespace lockstep
