/// Which leaves and pods of a fabric are as good as others.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "topologies/fabrics/fabric.hpp"

namespace lockstep {

/// Leaves (or units of leaves) and pods as somebody met them, in that order.
struct AreasMet {
  std::vector<int> units, pods;
};

/// On a whole tree whose switches spread every message evenly, where jobs lie is told by how many
/// nodes they have below which leaf and pod, whichever these are: what was found of some jobs holds
/// for others that lie alike. On other fabrics every node is one of its own.
class FabricAreas {
 public:
  /// `fabric` outlives this.
  explicit FabricAreas(const Fabric& fabric);

  /// Appends how nodes lie, in their order; areas that were not met yet follow those that were.
  void describe(std::span<const int> nodes, AreasMet& met, std::vector<int>& out) const;

  /// A link between switches by the area that it leads out of or into, as one who met areas numbers
  /// them.
  struct Place {
    std::uint32_t area = 0;  ///< 2 x unit, 2 x pod + 1; where no areas are alike, the link
    std::uint32_t number = 0;
  };
  [[nodiscard]] Place place_of(FabricLink link, const AreasMet& met) const;
  [[nodiscard]] FabricLink link_at(Place place, const AreasMet& met) const;

 private:
  static constexpr int kNowhere = -1;

  struct LinkArea {
    int area = kNowhere;  ///< 2 x unit, 2 x pod + 1, as the fabric numbers them
    std::uint32_t number = 0;
  };
  void add(int area, FabricLink link);

  bool alike_ = false;
  int unit_nodes_ = 1;
  int pods_ = 1;
  std::vector<int> pod_of_unit_;
  std::vector<LinkArea> area_of_link_;
  std::vector<std::vector<FabricLink>> links_;  ///< by area
};

}  // namespace lockstep
