#include "sim/cluster/link_loads.hpp"

#include <algorithm>
#include <cmath>
#include <set>

namespace lockstep {

LinkPlaces::LinkPlaces(const Fabric& fabric) : fabric_(&fabric), place_(fabric.link_count(), -1) {
  const FabricCounts& counts = fabric.counts();
  unit_nodes_ = std::max(1, counts.unit_nodes);
  for (int first = 0; first < fabric.nodes(); first += unit_nodes_) {
    const int unit = first / unit_nodes_;
    std::set<int> leaves;
    for (int nic = 0; nic < fabric.nics_per_node(); ++nic) {
      leaves.insert(fabric.leaf_of(first, nic));
    }
    pod_of_unit_.push_back(leaves.empty() ? 0 : fabric.pod_of(*leaves.begin()));
    for (const int leaf : leaves) {
      for (int uplink = 0; uplink < counts.leaf_uplinks; ++uplink) {
        place_[fabric.leaf_up(leaf, uplink)] = 2 * unit;
        place_[fabric.leaf_down(leaf, uplink)] = 2 * unit;
      }
    }
  }
  for (int pod = 0; counts.pods > 1 && pod < counts.pods; ++pod) {
    for (int spine = 0; spine < counts.spines; ++spine) {
      for (int uplink = 0; uplink < counts.spine_uplinks; ++uplink) {
        place_[fabric.spine_up(pod, spine, uplink)] = 2 * pod + 1;
        place_[fabric.spine_down(pod, spine, uplink)] = 2 * pod + 1;
      }
    }
  }
}

LinkLoads LinkPlaces::loads(std::span<const double> share_of_link) const {
  LinkLoads out{.unit_nodes = unit_nodes_, .units = {}, .pods = {}, .pod_of_unit = pod_of_unit_};
  out.units.resize(pod_of_unit_.size());
  if (fabric_->counts().pods > 1) {
    out.pods.resize(static_cast<std::size_t>(fabric_->counts().pods));
  }
  for (std::size_t link = 0; link < share_of_link.size(); ++link) {
    const std::int32_t place = place_[link];
    if (place < 0 || share_of_link[link] == 0) continue;
    std::vector<double>& of = place % 2 == 0 ? out.units : out.pods;
    double& most = of[static_cast<std::size_t>(place / 2)];
    most = std::max(most, std::round(share_of_link[link] * 1e9) * 1e-9);
  }
  return out;
}

}  // namespace lockstep
