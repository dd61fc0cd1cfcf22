#include "sim/trace/formats/workload_ranks.hpp"

#include <fmt/format.h>

namespace lockstep {

std::vector<int> WorkloadGroup::ranks_of(int rank) const {
  const int block = members * step;
  const int at = rank - first;
  std::vector<int> out;
  out.reserve(static_cast<std::size_t>(members));
  for (int m = 0; m < members; ++m) {
    out.push_back(first + at / block * block + at % step + m * step);
  }
  return out;
}

std::vector<RankTrace> ranks_of_stages(const std::vector<WorkloadStage>& stages) {
  // A file of a few lines must not take gigabytes: a rank takes some kilobytes by itself.
  constexpr std::size_t kMostWorkloadNodes = 10'000'000, kNodesOfRank = 20;
  std::size_t nodes = 0;
  for (const WorkloadStage& stage : stages) {
    nodes += (stage.work.nodes.size() + kNodesOfRank) * static_cast<std::size_t>(stage.ranks);
  }
  if (nodes > kMostWorkloadNodes) {
    fail_trace(stages.front().work.file, fmt::format("{} calls and kernels of all ranks", nodes),
               fmt::format("at most {}", kMostWorkloadNodes));
  }
  std::vector<RankTrace> out;
  for (const WorkloadStage& stage : stages) {
    for (int rank = stage.first; rank < stage.first + stage.ranks; ++rank) {
      RankTrace& copy = out.emplace_back(stage.work);
      copy.rank = rank;
      if (rank != stages.front().first) copy.notes.clear();
      for (std::size_t g = 0; g < stage.groups.size(); ++g) {
        copy.groups[g].ranks = stage.groups[g].ranks_of(rank);
      }
      for (RankTrace::Node& node : copy.nodes) {
        const bool message =
            node.kind == TraceNodeKind::send || node.kind == TraceNodeKind::receive;
        if (message) node.peer += rank;
      }
    }
  }
  return out;
}

}  // namespace lockstep
