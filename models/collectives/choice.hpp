/// NCCL's choice among the algorithms, with the user's wishes and the reason: what `lockstep comm`
/// prints. collective_cost() of collectives.hpp is the same without the reasons.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/collectives/algorithms.hpp"
#include "models/collectives/collectives.hpp"

namespace lockstep {

/// An algorithm with a protocol on this call.
struct JudgedCandidate {
  std::string_view algorithm;
  std::string_view protocol;  ///< empty where the algorithm cannot run
  Seconds latency, time;      ///< of its own line; 0 where it cannot run
  bool eligible = false;      ///< NCCL weighed it, within what the user allows
  std::string why_not;        ///< empty where it was eligible
};

struct CollectiveChoice {
  /// Nothing where no algorithm is left that can run; `reason` says why.
  std::optional<CollectiveCost> cost;
  Seconds time;      ///< alone on the machine
  int channels = 0;  ///< that the chosen algorithm takes at this size
  /// One line: "tree/ll128: 14.2 us against 19.0 us of ring/ll128; nvls, collnet_direct: SHARP is
  /// off in this fabric". The times in it are of single algorithms; where two are close, `time` is
  /// a little below both (candidate.hpp).
  std::string reason;
  std::vector<JudgedCandidate> candidates;  ///< eligible ones by time, then the others
};

/// Requires what collective_cost() requires, and a SHARP generation where SHARP is on.
CollectiveChoice choose_collective(const CollectiveCall& call, const GpuSpec& gpu,
                                   const TransportSpec& transport, NicShare nic,
                                   const CollectiveOptions& options);

}  // namespace lockstep
