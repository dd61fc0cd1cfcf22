#include "sim/trace/copy_rank.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <optional>

#include "models/base/input_error.hpp"

namespace lockstep {
namespace {

/// The group in the same place that `rank` is in; nothing where groups of that form do not tile.
std::optional<std::vector<int>> group_in_place(const std::vector<int>& ranks, int rank, int world) {
  if (std::ranges::binary_search(ranks, rank)) return ranks;
  const auto members = static_cast<int>(ranks.size());
  const int step = members > 1 ? ranks[1] - ranks[0] : 1;
  for (int m = 1; m < members; ++m) {
    if (ranks[static_cast<std::size_t>(m)] - ranks[static_cast<std::size_t>(m) - 1] != step) {
      return std::nullopt;
    }
  }
  const int block = step * members;
  if (ranks.front() % block >= step) return std::nullopt;  // begins inside of a block
  std::vector<int> out;
  out.reserve(static_cast<std::size_t>(members));
  for (int m = 0; m < members; ++m) out.push_back(rank / block * block + rank % step + m * step);
  if (out.back() >= world) return std::nullopt;
  return out;
}

void keep_length(RankTrace& trace, RankTrace::Node& node, std::string_view why) {
  node.kind = TraceNodeKind::exchange;
  node.stream = TraceNode::kNoStream;
  if (trace.unknown.calls++ == 0) {
    trace.unknown.first = fmt::format("{} {}", in_quotes(trace.names[node.name]), why);
  }
  trace.unknown.time += node.duration;
}

}  // namespace

RankTrace copy_rank(const RankTrace& source, int rank, int world) {
  RankTrace out = source;
  out.rank = rank;
  std::vector<bool> tiles;
  for (RankTrace::Group& group : out.groups) {
    const auto placed = group.all ? group.ranks : group_in_place(group.ranks, rank, world);
    tiles.push_back(placed.has_value());
    if (placed) group.ranks = *placed;
  }
  for (RankTrace::Node& node : out.nodes) {
    if (node.kind == TraceNodeKind::collective && !tiles[node.group]) {
      keep_length(out, node, "of a process group whose like for other ranks is not told");
    }
  }
  return out;
}

bool keep_recorded_calls(RankTrace& rank) {
  bool any = false;
  for (RankTrace::Node& node : rank.nodes) {
    const bool calls = node.kind == TraceNodeKind::collective || node.kind == TraceNodeKind::send ||
                       node.kind == TraceNodeKind::receive;
    if (!calls || node.duration == StepTime{}) continue;
    keep_length(rank, node, "as asked for");
    any = true;
  }
  return any;
}

void keep_messages(RankTrace& rank) {
  for (RankTrace::Node& node : rank.nodes) {
    if (node.kind == TraceNodeKind::send || node.kind == TraceNodeKind::receive) {
      keep_length(rank, node, "between ranks of which not all were recorded");
    }
  }
}

}  // namespace lockstep
