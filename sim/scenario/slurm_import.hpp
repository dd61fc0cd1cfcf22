/// A site's Slurm as a scenario with "queue": what its files say of nodes, rules, owners and jobs.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/scenario/named_jobs.hpp"
#include "sim/scenario/preset_store.hpp"

namespace lockstep {

/// A file by the name that messages use, and its text.
struct SlurmFile {
  std::string name, text;
};

struct SlurmFiles {
  SlurmFile conf;                       ///< slurm.conf
  std::optional<SlurmFile> topology;    ///< topology.conf
  std::optional<SlurmFile> accounting;  ///< sacct -P, with its heading
  std::optional<SlurmFile> squeue;      ///< squeue --json
  std::optional<SlurmFile> sacctmgr;    ///< sacctmgr dump
  std::optional<SlurmFile> qos;         ///< sacctmgr -P show qos, with its heading
};

struct ImportedSite {
  std::string scenario;            ///< JSON
  std::string jobs;                ///< the trace that it names, as CSV
  std::vector<std::string> notes;  ///< a line for each setting and job that the scenario lacks
  std::size_t taken = 0;           ///< jobs
  NamedJobs left_out;
};

/// `node`: the preset of the site's nodes; `trace`: how the scenario calls its jobs' file. Where no
/// node has a GPU, their CPUs are what jobs ask for. Throws InputError for files of which nothing
/// can be made.
ImportedSite import_slurm(const SlurmFiles& files, const std::string& node,
                          const std::string& trace, const PresetStore& presets);

}  // namespace lockstep
