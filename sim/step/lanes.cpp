#include "sim/step/lanes.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "topologies/routes/merge_hops.hpp"

namespace lockstep {
namespace {

void add_use(std::vector<RouteHop>& uses, FabricLink link, double share, bool only_known) {
  const auto it = std::ranges::find_if(uses, [&](const RouteHop& use) { return use.link == link; });
  if (it != uses.end()) {
    it->share += share;
  } else if (!only_known) {
    uses.push_back({link, share});
  }
}

/// Whether tokens for experts leave NICs, and some ranks get more of them.
bool has_skewed_nics(const NodeCosts& costs) {
  const LayerTransfer& transfer = costs.layer(Axis::expert);
  return transfer.network_share > 0 && transfer.is_skewed();
}

/// Lanes that are not side by side are taken to be alike.
bool lanes_are_alike(const StepPlan& plan) {
  const PlacementSpec& spec = plan.placement;
  if (has_skewed_nics(plan) || std::ranges::any_of(plan.further_pools, has_skewed_nics)) {
    return false;
  }
  return spec.order.front() != ParallelAxis::tensor || spec.gpus_per_node % spec.tensor == 0 ||
         spec.tensor % spec.gpus_per_node == 0;
}

}  // namespace

Lanes::Lanes(const StepPlan& plan, const Fabric& fabric, std::vector<int> nodes)
    : plan_(plan),
      placement_(plan.placement),
      fabric_(fabric),
      nodes_(std::move(nodes)),
      symmetric_(!fabric.is_drawn() && (fabric.spec().routing != Routing::ecmp ||
                                        fabric.spec().kind == FabricKind::ideal)),
      alike_(lanes_are_alike(plan)) {}

int Lanes::switches_between(int from, int to) const {
  return fabric_.switches_crossed(node_of(from), placement_.nic_of(from), node_of(to),
                                  placement_.nic_of(to));
}

bool Lanes::over_fabric(Place from, Place to) const {
  const int lanes = alike_ ? 1 : plan_.placement.tensor;
  for (int t = 0; t < lanes; ++t) {
    if (placement_.reach(rank(from, t), rank(to, t)) == Reach::fabric) return true;
  }
  return false;
}

int Lanes::switches_between(Place from, Place to) const {
  const int lanes = alike_ ? 1 : plan_.placement.tensor;
  int most = 0;
  for (int t = 0; t < lanes; ++t) {
    most = std::max(most, switches_between(rank(from, t), rank(to, t)));
  }
  return most;
}

Lanes::LanePort Lanes::lane_port(int node, int nic) const {
  return {{node, nic}, fabric_.is_drawn() ? 0 : fabric_.leaf_of(node, nic)};
}

Lanes::LanesOfPlace Lanes::lanes_of(Place at) {
  const auto stages = static_cast<std::size_t>(plan_.placement.pipeline);
  if (of_place_.empty()) of_place_.resize(stages * static_cast<std::size_t>(plan_.placement.data));
  LanesOfPlace& lanes =
      of_place_[static_cast<std::size_t>(at.data) * stages + static_cast<std::size_t>(at.stage)];
  if (lanes.first != kUnknownPorts) return lanes;
  lanes.first = static_cast<std::uint32_t>(lane_ports_.size());
  for (int lane = 0; lane < plan_.placement.tensor; ++lane) {
    const int r = rank(at, lane);
    lane_ports_.push_back(lane_port(node_of(r), placement_.nic_of(r)));
    const LanePort &first = lane_ports_[lanes.first], &own = lane_ports_.back();
    lanes.on_one_leaf = lanes.on_one_leaf && own.leaf == first.leaf;
    const bool beside = own.at.node == first.at.node && own.at.nic == first.at.nic;
    if (beside && plan_.placement.tensor <= kMostBits) {
      lanes.beside_first |= std::uint64_t{1} << static_cast<unsigned>(lane);
    }
  }
  return lanes;
}

bool Lanes::all_follow(const LanesOfPlace& from, const LanesOfPlace& to) const {
  // With PXN a message enters the fabric by the port of the rail that it goes to.
  return !fabric_.spec().pxn && plan_.placement.tensor <= kMostBits && from.on_one_leaf &&
         to.on_one_leaf && from.beside_first == to.beside_first;
}

void Lanes::add_all(int beside, std::vector<RouteHop>& uses) const {
  for (std::size_t i = 0; i < first_hops_.size(); ++i) {
    const int lanes = first_hops_[i].joins_nic ? beside : plan_.placement.tensor;
    // One after the other, as they are added where lanes are looked at one by one.
    for (int lane = 1; lane < lanes; ++lane) uses[i].share += first_hops_[i].share;
  }
}

Lanes::LanePort Lanes::entry(const LanePort& from, const LanePort& to) const {
  return fabric_.spec().pxn ? lane_port(from.at.node, to.at.nic) : from;
}

void Lanes::note_first(const LanePort& from, const LanePort& to,
                       const std::vector<RouteHop>& uses) {
  first_entry_ = entry(from, to);
  first_to_ = to;
  first_hops_.clear();
  for (const RouteHop& use : uses) {
    first_hops_.push_back({use.share, fabric_.joins_nic(use.link)});
  }
}

bool Lanes::follows_first(const LanePort& from, const LanePort& to,
                          std::vector<RouteHop>& uses) const {
  const LanePort own = entry(from, to);
  if (own.leaf != first_entry_.leaf || to.leaf != first_to_.leaf) return false;
  const auto is = [](const NodePort& a, const NodePort& b) {
    return a.node == b.node && a.nic == b.nic;
  };
  const bool same = is(own.at, first_entry_.at);
  if (same != is(to.at, first_to_.at)) return false;
  for (std::size_t i = 0; i < first_hops_.size(); ++i) {
    if (same || !first_hops_[i].joins_nic) uses[i].share += first_hops_[i].share;
  }
  return true;
}

void Lanes::add(Place from, Place to, int connections, bool only_known, double bytes,
                std::vector<RouteHop>& uses) {
  const bool follow = first_stands_for_all() && !only_known && uses.empty();
  const LanesOfPlace sources = lanes_of(from), targets = lanes_of(to);
  for (int t = 0; t < plan_.placement.tensor; ++t) {
    const int sender = rank(from, t), receiver = rank(to, t);
    if (!alike_ && placement_.reach(sender, receiver) != Reach::fabric) continue;
    const LanePort& source = lane_ports_[sources.first + static_cast<std::size_t>(t)];
    const LanePort& target = lane_ports_[targets.first + static_cast<std::size_t>(t)];
    if (follow && t > 0 && follows_first(source, target, uses)) continue;
    hops_.clear();
    const std::uint64_t queue_pair = queue_pair_of_turns(
        kFirstHashSeed, placement_.turn_at_nic(sender), placement_.turn_at_nic(receiver));
    route_connections(fabric_, source.at, target.at, queue_pair, connections, hops_);
    if (fabric_.is_drawn() && !only_known) {
      for (const RouteHop& hop : hops_) uses.push_back({hop.link, hop.share * bytes});
      continue;
    }
    const bool known = only_known || (symmetric_ && alike_ && t > 0);
    for (const RouteHop& hop : hops_) add_use(uses, hop.link, hop.share * bytes, known);
    if (follow && t == 0) {
      note_first(source, target, uses);
      if (all_follow(sources, targets)) return add_all(std::popcount(sources.beside_first), uses);
    }
  }
  // Routes over a graph may have hundreds of hops, too many to look each up among the others.
  if (fabric_.is_drawn() && !only_known) merge_hops(uses, 0);
}

void Lanes::add_ring(int replica, int stage, const DataGroup& group, std::vector<RouteHop>& uses) {
  std::vector<RouteHop> own;
  add({replica, stage}, {group.next(replica), stage}, plan_.connections.ring, false, 1.0, own);
  uses.insert(uses.end(), own.begin(), own.end());
}

}  // namespace lockstep
