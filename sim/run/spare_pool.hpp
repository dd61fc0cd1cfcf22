/// Nodes in reserve, and broken ones on their way back.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

#include "sim/core/random.hpp"
#include "sim/run/campaign.hpp"

namespace lockstep {

class SparePool {
 public:
  /// `spec` outlives the pool.
  SparePool(const SpareSpec& spec, std::uint64_t seed, std::uint32_t trajectory);

  /// Nodes that broke together go to repair at `now` and come back together: one job for one crew,
  /// first come, first served.
  void send_to_repair(RunTime now, int nodes);
  /// A node that is away comes then.
  void expect(RunTime back) { back_.push(back); }
  /// Repaired nodes up to `now` are hot spares again.
  void collect(RunTime now);

  struct Taken {
    int hot = 0;
    int warm = 0;
  };
  /// At most `wanted` nodes, hot ones first.
  Taken take(int wanted);
  [[nodiscard]] int ready() const { return hot_ + warm_; }
  /// When the next broken node comes back; INT64_MAX: none is under repair.
  [[nodiscard]] RunTime next_back() const;

 private:
  using Earliest = std::priority_queue<RunTime, std::vector<RunTime>, std::greater<>>;

  const SpareSpec& spec_;
  RandomStream stream_;
  int hot_, warm_;
  Earliest back_;
  Earliest crews_;  ///< when each is free again
};

}  // namespace lockstep
