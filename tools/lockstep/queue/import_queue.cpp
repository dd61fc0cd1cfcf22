#include "tools/lockstep/queue/import_queue.hpp"

#include <cstddef>
#include <filesystem>
#include <fmt/format.h>
#include <optional>
#include <ostream>
#include <string>

#include "models/base/input_error.hpp"
#include "models/base/input_file.hpp"
#include "models/base/number_text.hpp"
#include "models/base/output_file.hpp"
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

}  // namespace

Exit import_queue(const ParsedOptions& options, Console& console) {
  if (!options.has("slurm")) throw UsageError("lockstep queue import: no --slurm slurm.conf");
  const std::string path = options.has("output") ? options.get("output") : "-";
  if (path == "-" || path.ends_with(".gz")) {
    throw UsageError(
        "lockstep queue import: no file for the scenario, beside which its jobs go; allowed: -o "
        "site.json");
  }
  const PresetStore presets(options.all("presets"));
  const std::string node = node_of(options, presets);
  const SlurmFiles files{.conf = *file_of(options, "slurm"),
                         .topology = file_of(options, "topology"),
                         .accounting = file_of(options, "accounting"),
                         .squeue = file_of(options, "squeue"),
                         .sacctmgr = file_of(options, "sacctmgr"),
                         .qos = file_of(options, "qos")};
  const std::filesystem::path jobs = jobs_path(path);
  const ImportedSite site = import_slurm(files, node, jobs.filename().string(), presets);
  for (const std::string& note : site.notes) console.err << terminal_text(note) << "\n";
  if (site.taken == 0) {
    throw InputError({.file = files.accounting ? files.accounting->name
                              : files.squeue   ? files.squeue->name
                                               : files.conf.name,
                      .pointer = {},
                      .found = "no job to take",
                      .allowed = "jobs by --accounting (sacct -P) or --squeue (squeue --json)",
                      .nearest = {}});
  }
  OutputFile out(jobs.string());
  out.write(site.jobs);
  out.commit();
  write_output(Answer::file(site.scenario), options, console);
  const std::string omitted =
      site.left_out.count() == 0 ? std::string() : fmt::format(" ({})", site.left_out.names());
  console.err << terminal_text(fmt::format(
      "{} taken, {} left out{}; lockstep run {} replays them\n",
      counted(static_cast<double>(site.taken), "job"), site.left_out.count(), omitted, path));
  return Exit::ok;
}

}  // namespace lockstep
