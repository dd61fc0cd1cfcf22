#include "tools/lockstep/queue/import_queue.hpp"

#include <cstddef>
#include <filesystem>
#include <fmt/format.h>
#include <ostream>
#include <string>

#include "models/base/number_text.hpp"
#include "models/base/output_file.hpp"
#include "sim/scenario/site_files.hpp"

namespace lockstep {
namespace {

/// "site.json" -> "site.jobs.csv", beside it.
std::filesystem::path jobs_path(const std::string& scenario) {
  std::filesystem::path out(scenario);
  return out.replace_extension(".jobs.csv");
}

SiteAsked site_asked(const ParsedOptions& options) {
  return {.slurm = options.given("slurm"),
          .topology = options.given("topology"),
          .accounting = options.given("accounting"),
          .squeue = options.given("squeue"),
          .sacctmgr = options.given("sacctmgr"),
          .qos = options.given("qos"),
          .kueue = options.given("kueue"),
          .node = options.given("node"),
          .nodes = options.given("nodes")};
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
  const OpenbDocument document =
      read_openb_files(options.get("openb-nodes"), options.get("openb-pods"));
  write_output(Answer::file(document.text), options, console);
  const auto rows = [](std::size_t count, const char* what) {
    return counted(static_cast<double>(count), what);
  };
  console.err << terminal_text(
      fmt::format("{} and {} taken, {} of nodes, {} of pods; lockstep queue fill fills them\n",
                  rows(document.nodes, "node"), rows(document.pods, "pod"),
                  rows(document.node_kinds, "kind"), rows(document.pod_kinds, "kind")));
  return Exit::ok;
}

}  // namespace

Exit import_queue(const ParsedOptions& options, Console& console) {
  if (options.has("openb-nodes") || options.has("openb-pods")) {
    return import_openb(options, console);
  }
  const SiteAsked asked = site_asked(options);
  if (!asked.slurm && !asked.kueue) {
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
  const std::filesystem::path jobs = jobs_path(path);
  const ImportedSite site = read_site_files(asked, jobs.filename().string(), presets);
  for (const std::string& note : site.notes) console.err << terminal_text(note) << "\n";
  check_has_jobs(asked, site);
  const bool drawn = has_drawn_jobs(asked, site);
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
