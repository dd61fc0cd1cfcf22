/// A site's Kueue as a scenario with "queue": what its manifests say of quotas, cohorts and jobs.
#pragma once

#include <optional>
#include <string>

#include "sim/scenario/slurm_import.hpp"

namespace lockstep {

struct KueueSource {
  SlurmFile manifests;         ///< YAML, any number of documents
  std::string node;            ///< the preset of the site's nodes
  std::optional<int> nodes{};  ///< none: as many as have the GPUs of all nominal quotas together
  std::string trace;           ///< how the scenario calls its jobs' file
};

/// Accounts are LocalQueues, "namespace/name". Jobs are the Workloads that have ended, or that say
/// how long they may run; where there is no Workload, drawn ones stand in, which `notes` says, and
/// `jobs` is empty. Throws InputError for a file of which nothing can be made.
ImportedSite import_kueue(const KueueSource& source, const PresetStore& presets);

}  // namespace lockstep
