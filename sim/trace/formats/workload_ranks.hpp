/// Which ranks a call of a workload file is among: SimAI's and AICB's files say what every rank of
/// a pipeline stage does, and of a process group only its kind.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/trace/trace_builder.hpp"

namespace lockstep {

/// Process groups of one kind tile the ranks of a stage: `members` of them, `step` apart.
struct WorkloadGroup {
  std::string name;
  int first = 0, ranks = 0;  ///< of what they tile
  int members = 1, step = 1;

  /// The one that holds `rank`, ascending.
  [[nodiscard]] std::vector<int> ranks_of(int rank) const;
};

/// What all of some ranks do, in groups that differ from rank to rank.
struct WorkloadStage {
  RankTrace work;                     ///< as rank 0 of it; RankTrace::Node::group is of `groups`
  std::vector<WorkloadGroup> groups;  ///< by RankTrace::groups
  int first = 0, ranks = 0;
};

/// The stages' ranks, each with its own groups and, of messages, its own peers: RankTrace::Node::
/// peer is how far away the other end is. Throws InputError where that is more than can be held.
std::vector<RankTrace> ranks_of_stages(const std::vector<WorkloadStage>& stages);

}  // namespace lockstep
