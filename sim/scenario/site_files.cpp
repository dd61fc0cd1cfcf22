#include "sim/scenario/site_files.hpp"

#include <fmt/format.h>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/input_file.hpp"
#include "models/base/json_cursor.hpp"
#include "models/base/usage_error.hpp"
#include "models/base/write_json.hpp"
#include "sim/scenario/kueue_import.hpp"
#include "sim/scenario/openb_trace.hpp"
#include "sim/scenario/read_cluster.hpp"
#include "sim/scenario/read_filling.hpp"

namespace lockstep {
namespace {

constexpr std::size_t kImportLimit = std::size_t{1} << 30;  // bytes: millions of jobs
constexpr std::string_view kUsualNode = "dgx_h100";

std::optional<SlurmFile> site_file(const std::optional<std::string>& path) {
  if (!path) return std::nullopt;
  return SlurmFile{.name = *path, .text = read_maybe_gzip(*path, kImportLimit)};
}

std::string site_node(const SiteAsked& asked, const PresetStore& presets) {
  const std::string node = asked.node.value_or(std::string(kUsualNode));
  if (presets.has("nodes", node)) return node;
  const std::vector<std::string> names = presets.names("nodes");
  throw UsageError(fmt::format("--node: found {}; allowed: {}{}", in_quotes(node), listed(names),
                               did_you_mean(node, names)));
}

ImportedSite read_slurm_site(const SiteAsked& asked, const std::string& node,
                             const std::string& trace, const PresetStore& presets) {
  if (asked.nodes) throw UsageError("--nodes is of import --kueue");
  const SlurmFiles files{.conf = *site_file(asked.slurm),
                         .topology = site_file(asked.topology),
                         .accounting = site_file(asked.accounting),
                         .squeue = site_file(asked.squeue),
                         .sacctmgr = site_file(asked.sacctmgr),
                         .qos = site_file(asked.qos)};
  return import_slurm(files, node, trace, presets);
}

ImportedSite read_kueue_site(const SiteAsked& asked, const std::string& node,
                             const std::string& trace, const PresetStore& presets) {
  for (const auto& [file, option] : {std::pair{&asked.slurm, "slurm"},
                                     {&asked.topology, "topology"},
                                     {&asked.accounting, "accounting"},
                                     {&asked.squeue, "squeue"},
                                     {&asked.sacctmgr, "sacctmgr"},
                                     {&asked.qos, "qos"}}) {
    if (*file) {
      throw UsageError(fmt::format("--{} is of import --slurm, not beside --kueue", option));
    }
  }
  KueueSource source{.manifests = *site_file(asked.kueue), .node = node, .trace = trace};
  if (asked.nodes) source.nodes = asked_count("nodes", *asked.nodes, kMaxNodes);
  return import_kueue(source, presets);
}

/// The file that jobs would have come from.
std::string jobs_source(const SiteAsked& asked) {
  for (const std::optional<std::string>* file : {&asked.accounting, &asked.squeue, &asked.slurm}) {
    if (*file) return **file;
  }
  return asked.kueue.value_or("");
}

}  // namespace

ImportedSite read_site_files(const SiteAsked& asked, const std::string& trace,
                             const PresetStore& presets) {
  const std::string node = site_node(asked, presets);
  return asked.kueue ? read_kueue_site(asked, node, trace, presets)
                     : read_slurm_site(asked, node, trace, presets);
}

bool has_drawn_jobs(const SiteAsked& asked, const ImportedSite& site) {
  return asked.kueue && site.jobs.empty();
}

void check_has_jobs(const SiteAsked& asked, const ImportedSite& site) {
  if (site.taken != 0 || has_drawn_jobs(asked, site)) return;
  throw InputError({.file = jobs_source(asked),
                    .pointer = {},
                    .found = "no job to take",
                    .allowed = asked.kueue
                                   ? "Workloads that have ended, or say how long they may run"
                                   : "jobs by --accounting (sacct -P) or --squeue (squeue --json)",
                    .nearest = {}});
}

OpenbDocument read_openb_files(const std::string& nodes, const std::string& pods) {
  FillingSpec spec;
  read_openb_nodes(nodes, read_maybe_gzip(nodes, kImportLimit), spec.nodes);
  read_openb_pods(pods, read_maybe_gzip(pods, kImportLimit), spec.pods);
  OpenbDocument out{.text = {}, .nodes = spec.nodes.size(), .pods = spec.pods.size()};
  unite_shapes(spec.nodes);
  unite_shapes(spec.pods);
  out.node_kinds = spec.nodes.size();
  out.pod_kinds = spec.pods.size();
  out.text = write_json(filling_document(spec), 2) + "\n";
  (void)read_filling(JsonCursor::parse(pods, out.text));
  return out;
}

}  // namespace lockstep
