/// Which operations of a rank wait for which, as GOAL says it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/trace/formats/goal.hpp"

namespace lockstep {

/// Operations are counted from 0.
class GoalDependencies {
 public:
  /// The most of a rank: what starts with another one waits for all that this one waits for.
  static constexpr std::size_t kMost = 200'000'000;

  void add_operation() { before_.emplace_back(); }
  /// `requires`: waits for the end of `other`.
  void wait_for_end(std::uint32_t operation, std::uint32_t other) {
    before_[operation].push_back(other);
  }
  /// `irequires`: waits for its start, which is for what `other` waits for.
  void wait_for_start(std::uint32_t operation, std::uint32_t other) {
    with_.push_back({operation, other});
  }
  /// The dependencies of the rank's nodes, of which operation i has the number i + 1. Throws
  /// InputError at `place` for operations that wait for each other's start, and for more than
  /// kMost.
  void give_to(RankTrace& rank, const std::string& place);

 private:
  struct Start {
    std::uint32_t operation = 0, other = 0;
  };
  void add_starts(const std::string& place);

  std::vector<std::vector<std::uint32_t>> before_;  ///< by operation
  std::vector<Start> with_;
};

/// The rank as part of a trace, whose nodes have the operations' numbers counted from 1. Requires a
/// sender and a tag for every receive. Throws as give_to() does.
RankTrace trace_of_goal(const std::string& file, const GoalRank& rank);

}  // namespace lockstep
