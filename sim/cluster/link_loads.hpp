/// How much of the links between switches the running trainings fill, by the leaf or the pod that a
/// link leads out of or into.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "topologies/fabrics/fabric.hpp"

namespace lockstep {

/// Of the busiest link of each: bytes in a step of those who send there, over the time of their
/// steps alone, as a share of the link's rate.
struct LinkLoads {
  int unit_nodes = 1;         ///< below one leaf, or one unit of leaves
  std::vector<double> units;  ///< by unit
  std::vector<double> pods;   ///< by pod; empty: there is one
  std::vector<int> pod_of_unit;
};

/// Which unit or pod a link belongs to. Requires a whole tree.
class LinkPlaces {
 public:
  /// `fabric` outlives it.
  explicit LinkPlaces(const Fabric& fabric);

  /// `share_of_link`: by FabricLink. Shares are kept to nine digits, so that sums that differ in
  /// their order alone are equal.
  [[nodiscard]] LinkLoads loads(std::span<const double> share_of_link) const;

 private:
  const Fabric* fabric_;
  std::vector<std::int32_t> place_;  ///< 2 x unit, 2 x pod + 1; below 0: neither
  std::vector<int> pod_of_unit_;
  int unit_nodes_ = 1;
};

}  // namespace lockstep
