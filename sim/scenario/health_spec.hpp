/// How a cluster with a queue looks after its nodes: drains for maintenance, nodes that fail more
/// often than others, the rule that finds them, and the test before a node serves again.
#pragma once

#include <optional>
#include <vector>

#include "sim/scenario/failure_mode.hpp"

namespace lockstep {

/// Maintenance: from `at` on the nodes take no new jobs; each is gone for `lasts` from when its
/// last job has ended.
struct NodeDrain {
  RunTime at = 0;
  RunTime lasts = 0;
  std::optional<RunTime> deadline{};  ///< since `at`: jobs that still run then go, and wait again
  std::vector<int> nodes;
};

/// Nodes that fail more often than others. The mean of all nodes stays that of "reliability".
struct LemonNodes {
  double share = 0;  ///< of all nodes; 0: there are none
  double times = 1;  ///< as often as the others
};

/// A node that broke so often in so short a time is gone for a repair, after which it is as good as
/// any other.
struct LemonDetection {
  int failures = 0;  ///< 0: there is no such rule
  RunTime within = 0;
  RunTime repair = 0;
};

struct QueueHealth {
  std::vector<NodeDrain> drains;
  LemonNodes lemons;
  LemonDetection detection;
  RunTime burn_in = 0;  ///< from the end of a repair or a drain until a node takes jobs

  /// Whether nodes may be gone while they are not broken.
  [[nodiscard]] bool any() const {
    return !drains.empty() || lemons.share > 0 || detection.failures > 0 || burn_in > 0;
  }
};

}  // namespace lockstep
