/// The rules of a site's Slurm as parts of a scenario's "queue".
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "sim/scenario/slurm_site.hpp"

namespace lockstep {

/// Order, admission, cycles, preemption, weights and placement, by slurm.conf.
nlohmann::ordered_json slurm_rules_json(const SlurmSite& site, std::vector<std::string>& notes);

/// "qos" of the rows of `sacctmgr show qos`, and of the names that jobs and partitions have
/// besides. Without `limits` (AccountingStorageEnforce) none is kept.
nlohmann::ordered_json slurm_qos_json(const std::vector<std::map<std::string, std::string>>& rows,
                                      const std::set<std::string>& named, bool limits,
                                      const std::string& file, std::vector<std::string>& notes);

/// "accounts" of the lines of `sacctmgr dump`.
nlohmann::ordered_json slurm_accounts_json(const std::vector<DumpedAssociation>& lines, bool limits,
                                           const std::string& file,
                                           std::vector<std::string>& notes);

}  // namespace lockstep
