/// What the cluster's own fabric lets through of the collectives that `lockstep comm` prints.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "models/collectives/algorithms.hpp"
#include "models/collectives/collectives.hpp"
#include "sim/answer/comm_collective.hpp"
#include "sim/fabric/dcqcn_collective.hpp"
#include "topologies/fabrics/fabric.hpp"

namespace lockstep {

/// What the switches between a study's members and slow NICs let through, by shape: a shape is the
/// same at all sizes.
class StudyFabric {
 public:
  /// The study outlives this.
  explicit StudyFabric(const CollectiveStudy& study);

  /// Whether the transport has DCQCN, whose start depends on how much is sent.
  [[nodiscard]] bool starts_slowly() const {
    return study_.cluster.transport.congestion_control != CongestionControl::none;
  }

  struct Limit {
    SecondsPerByte per_byte;  ///< of payload; 0: nothing can hold it back
    std::string link;
  };
  struct Limits {
    Limit switches;
    Limit nics;  ///< those slower than the nodes' own (CollectiveLoad::slowest_nic())
  };
  const Limits& limits(const CollectiveCall& call, const CollectiveCost& cost);

  /// What slows all bytes of a call, with the start of DCQCN. No link: no link limits it.
  struct Slowed {
    Seconds moving;
    std::string link;
  };
  /// Requires starts_slowly().
  [[nodiscard]] Slowed slowed(const CollectiveCall& call, const CollectiveCost& cost) const;

 private:
  [[nodiscard]] CollectiveContext context_of(const CollectiveCall& call) const;
  [[nodiscard]] std::vector<StartedGroup> shaped(const CollectiveCall& call,
                                                 std::string_view algorithm) const;
  void add_group(const std::vector<int>& gpus);

  const CollectiveStudy& study_;
  std::optional<Fabric> fabric_;  ///< only where it can limit
  std::vector<std::vector<FabricMember>> groups_;
  /// Of a way in which a group lies: its NVLink domains, and the fewest members in one.
  std::map<std::tuple<CollectiveOp, std::string_view, int, int>, Limits> limits_;
};

}  // namespace lockstep
