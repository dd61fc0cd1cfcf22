/// What slurm.conf, topology.conf and sacctmgr's files say of a site, before it becomes a scenario.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/scenario/slurm_conf.hpp"

namespace lockstep {

struct SlurmNode {
  std::string name;
  int gpus = 0, cpus = 1;
};

/// A line of PartitionName, with what DEFAULT lines before it said.
struct SlurmPartition {
  std::string name, nodes, qos;
  int tier = 1, priority = 1;
  double grace = 0;
  double max_time = -1;  ///< seconds; below 0: none
  bool is_default = false;
};

/// Settings of slurm.conf by their names in small letters.
struct SlurmSite {
  std::vector<SlurmNode> nodes;
  std::vector<SlurmPartition> partitions;
  std::map<std::string, std::string> settings;
  std::map<std::string, std::string> scheduler;  ///< SchedulerParameters and PreemptParameters

  [[nodiscard]] std::string get(std::string_view setting) const;
  /// A number of a setting in `unit_s` seconds; nothing where it is not set, or none.
  [[nodiscard]] std::optional<double> number(std::string_view setting, double unit_s = 1) const;
  [[nodiscard]] std::optional<double> scheduler_number(std::string_view setting) const;
};

/// Reads slurm.conf. Settings that do not act, or that are not known, are told in `notes`.
SlurmSite read_slurm_conf(const std::string& file, std::string_view text,
                          std::vector<std::string>& notes);

/// Nodes of each leaf switch, or block, of topology.conf, in its order.
std::vector<std::vector<std::string>> read_slurm_leaves(const std::string& file,
                                                        std::string_view text,
                                                        std::vector<std::string>& notes);

/// A line of `sacctmgr dump`: an account or a user below the parent that was named last.
struct DumpedAssociation {
  std::string name, parent;
  bool is_user = false;
  std::map<std::string, std::string> values;  ///< by key in small letters
};
std::vector<DumpedAssociation> read_sacctmgr_dump(const std::string& file, std::string_view text,
                                                  std::vector<std::string>& notes);

/// Rows of `sacctmgr -P show qos`, by the heading in small letters. Throws InputError for a heading
/// without Name.
std::vector<std::map<std::string, std::string>> read_sacctmgr_qos(const std::string& file,
                                                                  std::string_view text);

std::string in_small_letters(std::string_view text);

}  // namespace lockstep
