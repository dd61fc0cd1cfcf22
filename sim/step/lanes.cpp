#include "sim/step/lanes.hpp"

#include <algorithm>

namespace lockstep {
namespace {

void add_use(std::vector<RouteHop>& uses, FabricLink link, double share, bool only_known) {
  const auto it =
      std::find_if(uses.begin(), uses.end(), [&](const RouteHop& use) { return use.link == link; });
  if (it != uses.end()) {
    it->share += share;
  } else if (!only_known) {
    uses.push_back({link, share});
  }
}

}  // namespace

Lanes::Lanes(const Scenario& scenario, const StepPlan& plan)
    : plan_(plan),
      placement_(plan.placement),
      fabric_(scenario.fabric, std::max(scenario.nodes, placement_.nodes()),
              nic_ports(scenario.node).count, nic_ports(scenario.node).bandwidth),
      symmetric_(scenario.fabric.routing == Routing::spray ||
                 scenario.fabric.kind == FabricKind::ideal) {}

void Lanes::add(Place from, Place to, bool only_known, double bytes, std::vector<RouteHop>& uses) {
  for (int t = 0; t < plan_.placement.tensor; ++t) {
    const int a = placement_.rank({.tensor = t, .data = from.data, .pipeline = from.stage});
    const int b = placement_.rank({.tensor = t, .data = to.data, .pipeline = to.stage});
    hops_.clear();
    fabric_.route(placement_.node_of(a), placement_.nic_of(a), placement_.node_of(b),
                  placement_.nic_of(b), static_cast<std::uint64_t>(a), hops_);
    const bool known = only_known || (symmetric_ && t > 0);
    for (const RouteHop& hop : hops_) add_use(uses, hop.link, hop.share * bytes, known);
  }
}

void Lanes::add_tensor(Place at, std::vector<RouteHop>& uses) const {
  const int first = rank(at);
  const int node = placement_.node_of(first), nic = placement_.nic_of(first);
  const double lanes =
      std::max(1.0, static_cast<double>(plan_.placement.gpus_per_node) / plan_.placement.nic_ports);
  add_use(uses, fabric_.nic_up(node, nic), lanes * plan_.tensor_network_share, false);
  add_use(uses, fabric_.nic_down(node, nic), lanes * plan_.tensor_network_share, false);
}

void Lanes::add_ring(int replica, int stage, int per_domain, std::vector<RouteHop>& uses) {
  const int next = (replica + per_domain) % plan_.placement.data;
  std::vector<RouteHop> own;
  add({replica, stage}, {next, stage}, false, 1.0, own);
  uses.insert(uses.end(), own.begin(), own.end());
}

}  // namespace lockstep
