/// Which operations of a rank wait for which, as GOAL says it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sim/trace/formats/goal.hpp"

namespace lockstep {

/// Operations are counted from 0: `ends` wait for the end of others, `starts` for what others wait
/// for. Both outlive this.
class GoalDependencies {
 public:
  GoalDependencies(std::size_t operations, std::span<const GoalRank::Wait> ends,
                   std::span<const GoalRank::Wait> starts)
      : operations_(operations), ends_(ends), with_(starts.begin(), starts.end()) {}

  /// The most of a rank: what starts with another one waits for all that this one waits for.
  static constexpr std::size_t kMost = 200'000'000;
  /// The dependencies of the rank's nodes, of which operation i has the number i + 1. Throws
  /// InputError at `place` for operations that wait for each other's start, and for more than
  /// kMost.
  void give_to(RankTrace& rank, const std::string& place);

 private:
  using Start = GoalRank::Wait;
  void give_ends(RankTrace& rank) const;
  void add_starts(const std::string& place);

  std::size_t operations_;
  std::span<const GoalRank::Wait> ends_;
  std::vector<std::vector<std::uint32_t>> before_;  ///< by operation, where some wait for starts
  std::vector<Start> with_;
};

/// The rank as part of a trace, whose nodes have the operations' numbers counted from 1. Requires a
/// sender and a tag for every receive. Throws as give_to() does.
RankTrace trace_of_goal(const std::string& file, const GoalRank& rank);
/// Writes the rank to `out`, whose memory is reused.
void trace_of_goal(const std::string& file, const GoalRank& rank, RankTrace& out);

}  // namespace lockstep
