#include "sim/cluster/fabric_areas.hpp"

#include <algorithm>
#include <cassert>

namespace lockstep {
namespace {

/// Where `area` is among those that were met.
std::uint32_t number_of_area(const std::vector<int>& met, int area) {
  const auto at = std::ranges::find(met, area);
  assert(at != met.end() && "an area that nobody met");
  return static_cast<std::uint32_t>(at - met.begin());
}

int meet(std::vector<int>& met, int area) {
  const auto at = std::ranges::find(met, area);
  if (at != met.end()) return static_cast<int>(at - met.begin());
  met.push_back(area);
  return static_cast<int>(met.size() - 1);
}

}  // namespace

FabricAreas::FabricAreas(const Fabric& fabric)
    : alike_(!fabric.is_drawn() && fabric.spec().routing != Routing::ecmp) {
  if (!alike_) return;
  const FabricCounts& counts = fabric.counts();
  unit_nodes_ = std::max(1, counts.unit_nodes);
  pods_ = counts.pods;
  area_of_link_.resize(fabric.link_count());
  for (int first = 0; first < fabric.nodes(); first += unit_nodes_) {
    const int unit = first / unit_nodes_;
    std::vector<int> leaves;
    for (int nic = 0; nic < fabric.nics_per_node(); ++nic) {
      const int leaf = fabric.leaf_of(first, nic);
      if (std::ranges::find(leaves, leaf) == leaves.end()) leaves.push_back(leaf);
    }
    pod_of_unit_.push_back(leaves.empty() ? 0 : fabric.pod_of(leaves.front()));
    if (counts.leaf_uplinks == 0) continue;
    for (const int leaf : leaves) {
      add(2 * unit, fabric.leaf_up(leaf, 0));
      add(2 * unit, fabric.leaf_down(leaf, 0));
    }
  }
  for (int pod = 0; pods_ > 1 && pod < pods_; ++pod) {
    add(2 * pod + 1, fabric.spine_up(pod, 0, 0));
    add(2 * pod + 1, fabric.spine_down(pod, 0, 0));
  }
}

void FabricAreas::add(int area, FabricLink link) {
  const auto at = static_cast<std::size_t>(area);
  if (links_.size() <= at) links_.resize(at + 1);
  area_of_link_[link] = {area, static_cast<std::uint32_t>(links_[at].size())};
  links_[at].push_back(link);
}

void FabricAreas::describe(std::span<const int> nodes, AreasMet& met, std::vector<int>& out) const {
  if (!alike_) {
    out.insert(out.end(), nodes.begin(), nodes.end());
    return;
  }
  for (std::size_t i = 0; i < nodes.size();) {
    const int unit = nodes[i] / unit_nodes_;
    const std::size_t first = i;
    while (i < nodes.size() && nodes[i] / unit_nodes_ == unit) ++i;
    out.push_back(meet(met.units, unit));
    if (pods_ > 1) out.push_back(meet(met.pods, pod_of_unit_[static_cast<std::size_t>(unit)]));
    out.push_back(static_cast<int>(i - first));
  }
}

FabricAreas::Place FabricAreas::place_of(FabricLink link, const AreasMet& met) const {
  if (!alike_) return {link, 0};
  const auto [area, number] = area_of_link_[link];
  assert(area != kNowhere && "a link of no area");
  const bool is_pod = area % 2 == 1;
  return {2 * number_of_area(is_pod ? met.pods : met.units, area / 2) + (is_pod ? 1 : 0), number};
}

FabricLink FabricAreas::link_at(Place place, const AreasMet& met) const {
  if (!alike_) return place.area;
  const bool is_pod = place.area % 2 == 1;
  const int area = 2 * (is_pod ? met.pods : met.units)[place.area / 2] + (is_pod ? 1 : 0);
  return links_[static_cast<std::size_t>(area)][place.number];
}

}  // namespace lockstep
