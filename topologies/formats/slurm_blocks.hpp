/// What Slurm's topology.yaml says, and topologies of blocks, as a tree in topology.conf's words.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

struct SlurmConf {
  std::string tree;  ///< lines SwitchName=, for read_slurm_topology()
  std::vector<std::string> assumptions;
};

/// Whether the text is a topology.yaml: a list whose entries begin with "topology".
bool is_slurm_yaml(std::string_view text);

/// One topology of a topology.yaml: `wanted`, else the one with cluster_default, else the only one.
/// Throws InputError, with line and column, also where several are left to choose from.
SlurmConf slurm_yaml(const std::string& file, std::string_view text, const std::string& wanted);

/// A topology.conf: blocks become a tree, anything else stays. A block is hosts under one switch;
/// nothing says what joins blocks, so one switch above them is assumed.
SlurmConf slurm_conf(const std::string& file, std::string_view text);

}  // namespace lockstep
