#include "sim/step/lanes.hpp"

#include <algorithm>
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

bool Lanes::follows_first(const NodePort& from, const NodePort& to,
                          std::vector<RouteHop>& uses) const {
  const auto port = [this](const NodePort& source, const NodePort& target) {
    return NodePort{source.node, fabric_.spec().pxn ? target.nic : source.nic};
  };
  const auto leaf = [this](const NodePort& at) { return fabric_.leaf_of(at.node, at.nic); };
  const NodePort own = port(from, to), first = port(first_from_, first_to_);
  if (leaf(own) != leaf(first) || leaf(to) != leaf(first_to_)) return false;
  const auto is = [](const NodePort& a, const NodePort& b) {
    return a.node == b.node && a.nic == b.nic;
  };
  const bool same = is(own, first);
  if (same != is(to, first_to_)) return false;
  for (std::size_t i = 0; i < first_hops_.size(); ++i) {
    if (same || !fabric_.joins_nic(first_hops_[i].link)) uses[i].share += first_hops_[i].share;
  }
  return true;
}

void Lanes::add(Place from, Place to, int connections, bool only_known, double bytes,
                std::vector<RouteHop>& uses) {
  const bool follow = first_stands_for_all() && !only_known && uses.empty();
  for (int t = 0; t < plan_.placement.tensor; ++t) {
    const int a = rank(from, t), b = rank(to, t);
    if (!alike_ && placement_.reach(a, b) != Reach::fabric) continue;
    const NodePort source{node_of(a), placement_.nic_of(a)};
    const NodePort target{node_of(b), placement_.nic_of(b)};
    if (follow && t > 0 && follows_first(source, target, uses)) continue;
    hops_.clear();
    const std::uint64_t queue_pair =
        queue_pair_of_turns(kFirstHashSeed, placement_.turn_at_nic(a), placement_.turn_at_nic(b));
    route_connections(fabric_, source, target, queue_pair, connections, hops_);
    if (fabric_.is_drawn() && !only_known) {
      for (const RouteHop& hop : hops_) uses.push_back({hop.link, hop.share * bytes});
      continue;
    }
    const bool known = only_known || (symmetric_ && alike_ && t > 0);
    for (const RouteHop& hop : hops_) add_use(uses, hop.link, hop.share * bytes, known);
    if (follow && t == 0) {
      first_from_ = source;
      first_to_ = target;
      first_hops_ = uses;
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
