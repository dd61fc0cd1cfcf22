/// Stages of a pipeline that lie alike on a whole tree, some nodes apart: what one of them puts on
/// links the others put on links as many nodes further on.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "topologies/fabrics/fabric.hpp"
#include "topologies/fabrics/placement.hpp"

namespace lockstep {

/// Two stages are alike where each rank of one lies as many nodes, leaves and pods further on than
/// that rank of the other. Requires that ranks fill the nodes of the fabric from the first on.
class StageShifts {
 public:
  /// Nothing is alike.
  StageShifts() = default;
  /// Of a whole tree whose switches spread every message evenly.
  StageShifts(const Fabric& fabric, const Placement& placement);

  /// Stages of one number are alike; it is that of their first.
  [[nodiscard]] int like(int stage) const { return stages_.empty() ? stage : of(stage).like; }
  /// like() for what a stage sends to the next one. The last stage sends nothing.
  [[nodiscard]] int like_with_next(int stage) const {
    return stages_.empty() ? stage : of(stage).like_with_next;
  }
  /// What `link` is to stage `to`, which is like `from`, if that is what it is to `from`.
  [[nodiscard]] FabricLink moved(FabricLink link, int from, int to) const {
    if (from == to) return link;
    const std::size_t layer = link < first_leaf_link_ ? 0 : link < first_spine_link_ ? 1 : 2;
    return static_cast<FabricLink>(std::int64_t{link} + of(to).links[layer] -
                                   of(from).links[layer]);
  }

 private:
  struct Stage {
    int like = 0, like_with_next = 0;
    std::array<std::int64_t, 3> links{};  ///< from the first like it: of NICs, of leaves, of spines
  };
  [[nodiscard]] const Stage& of(int stage) const {
    return stages_[static_cast<std::size_t>(stage)];
  }

  std::vector<Stage> stages_;
  FabricLink first_leaf_link_ = 0, first_spine_link_ = 0;
};

}  // namespace lockstep
