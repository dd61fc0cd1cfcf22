#include "sim/step/like_links.hpp"

#include <map>
#include <numeric>

namespace lockstep {
namespace {

/// Where ranks reach the fabric: ports of NICs, or leaf switches. A place is like another where the
/// same groups have as many lanes, and the first lane of each is at the other.
class LanePlaces {
 public:
  /// `place` of a rank; `first`: of its group's lane 0.
  void add(int place, int first, int first_place) {
    Lodged& lodged = at_[place];
    ++lodged.lanes[first];
    if (lodged.lanes.size() == 1) lodged.of = first_place;
    lodged.agreed = lodged.agreed && lodged.of == first_place;
  }
  /// Calls `like(place, simulated)` for places where no lane is simulated and another's are alike.
  template <class Like>
  void for_each_like(const Like& like) const {
    for (const auto& [place, lodged] : at_) {
      if (!lodged.agreed || lodged.of == place) continue;
      if (lodged.lanes == at_.at(lodged.of).lanes) like(place, lodged.of);
    }
  }

 private:
  struct Lodged {
    std::map<int, int> lanes;  ///< by the first rank of their group
    int of = 0;                ///< where those first ranks are
    bool agreed = true;        ///< all of them
  };
  std::map<int, Lodged> at_;
};

}  // namespace

std::vector<FabricLink> simulated_links(const Lanes& lanes) {
  const Fabric& fabric = lanes.fabric();
  std::vector<FabricLink> of(fabric.link_count());
  std::iota(of.begin(), of.end(), FabricLink{0});
  if (!lanes.first_stands_for_all()) return of;
  const Placement& placement = lanes.placement();
  const int nics = fabric.nics_per_node();
  const bool has_spines = fabric.counts().leaf_uplinks > 0;
  LanePlaces ports, leaves;
  for (int rank = 0; rank < placement.ranks(); ++rank) {
    RankCoordinates at = placement.coordinates(rank);
    at.tensor = 0;
    const int first = placement.rank(at);
    const int node = lanes.node_of(rank), nic = placement.nic_of(rank);
    const int first_node = lanes.node_of(first), first_nic = placement.nic_of(first);
    ports.add(node * nics + nic, first, first_node * nics + first_nic);
    if (!has_spines) continue;
    leaves.add(fabric.leaf_of(node, nic), first, fabric.leaf_of(first_node, first_nic));
  }
  ports.for_each_like([&](int port, int simulated) {
    of[fabric.nic_up(port / nics, port % nics)] = fabric.nic_up(simulated / nics, simulated % nics);
    of[fabric.nic_down(port / nics, port % nics)] =
        fabric.nic_down(simulated / nics, simulated % nics);
  });
  leaves.for_each_like([&](int leaf, int simulated) {
    of[fabric.leaf_up(leaf, 0)] = fabric.leaf_up(simulated, 0);
    of[fabric.leaf_down(leaf, 0)] = fabric.leaf_down(simulated, 0);
  });
  return of;
}

}  // namespace lockstep
