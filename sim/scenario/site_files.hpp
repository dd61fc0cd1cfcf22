/// A site's Slurm or Kueue, or the nodes and pods of Alibaba's openb, read off its files and made
/// into a scenario.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "sim/scenario/preset_store.hpp"
#include "sim/scenario/slurm_import.hpp"

namespace lockstep {

/// What is said of a site, as it was typed: slurm.conf and what lies beside it, or Kueue's
/// manifests.
struct SiteAsked {
  std::optional<std::string> slurm{};       ///< --slurm: the file slurm.conf
  std::optional<std::string> topology{};    ///< --topology and so on: the files of SlurmFiles
  std::optional<std::string> accounting{};  ///< --accounting
  std::optional<std::string> squeue{};      ///< --squeue
  std::optional<std::string> sacctmgr{};    ///< --sacctmgr
  std::optional<std::string> qos{};         ///< --qos
  std::optional<std::string> kueue{};       ///< --kueue: the file, which goes with none of these
  std::optional<std::string> node{};        ///< --node: a preset; none: dgx_h100
  std::optional<std::string> nodes{};       ///< --nodes: a whole number, of Kueue alone
};

/// Reads the files of --kueue, else those of --slurm, one of which is there. `trace` as in
/// import_slurm(). Throws InputError or UsageError.
ImportedSite read_site_files(const SiteAsked& asked, const std::string& trace,
                             const PresetStore& presets);

/// Whether drawn jobs stand in for those of the site, which names none.
bool has_drawn_jobs(const SiteAsked& asked, const ImportedSite& site);

/// Throws InputError where no job was taken and none is drawn.
void check_has_jobs(const SiteAsked& asked, const ImportedSite& site);

/// Nodes and pods as a document with "filling".
struct OpenbDocument {
  std::string text;
  std::size_t nodes = 0, pods = 0;  ///< rows that were taken
  std::size_t node_kinds = 0, pod_kinds = 0;
};

/// Throws InputError for files of which none can be made.
OpenbDocument read_openb_files(const std::string& nodes, const std::string& pods);

}  // namespace lockstep
