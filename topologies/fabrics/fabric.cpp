#include "topologies/fabrics/fabric.hpp"

#include <algorithm>
#include <cassert>
#include <fmt/format.h>
#include <utility>

#include "topologies/fabrics/drawn_fabric.hpp"
#include "topologies/fabrics/fabric_counts.hpp"
#include "topologies/graph/cluster_graph.hpp"
#include "topologies/routes/flow_hash.hpp"
#include "topologies/routes/graph_routes.hpp"
#include "topologies/routes/merge_hops.hpp"

namespace lockstep {
namespace {

constexpr FabricLink link_number(int n) { return static_cast<FabricLink>(n); }

/// The links at a port's end, with their shares of its capacity.
void add_port_links(const ClusterGraph& graph, Vertex port, bool up, std::vector<RouteHop>& out) {
  const GraphLink first = graph.first_link()[port], end = graph.first_link()[port + 1];
  BytesPerSecond sum;
  for (GraphLink i = first; i < end; ++i) sum += graph.capacity()[i];
  for (GraphLink i = first; i < end; ++i) {
    out.push_back({up ? i : graph.reverse(i), graph.capacity()[i] / sum});
  }
}

/// "node 3 nic 1 up" for the only cable of a port.
std::string drawn_link_name(const ClusterGraph& graph, GraphLink link) {
  const bool up = graph.source()[link] < graph.port_count();
  const Vertex port = up ? graph.source()[link] : graph.target()[link];
  const bool only =
      port < graph.port_count() && graph.first_link()[port + 1] - graph.first_link()[port] == 1;
  return only ? graph.vertex_name(port) + (up ? " up" : " down") : graph.link_name(link);
}

int most_nics(const ClusterGraph& graph) {
  int most = 0;
  for (int node = 0; node < graph.nodes(); ++node) most = std::max(most, graph.nics(node));
  return most;
}

FabricSpec with_graph(FabricSpec spec, std::shared_ptr<const ClusterGraph> graph) {
  spec.kind = FabricKind::file;
  spec.graph = std::move(graph);
  return spec;
}

}  // namespace

Fabric::Fabric(const FabricSpec& spec, int nodes, int nics_per_node, BytesPerSecond nic_bandwidth)
    : spec_(spec), nodes_(nodes), nics_(nics_per_node), nic_bandwidth_(nic_bandwidth) {
  assert(!check(spec, nodes, nics_per_node, nic_bandwidth));
  if (!lockstep::is_drawn(spec)) {
    number_tree();
    return;
  }
  const auto graph = draw_fabric(spec, nodes, nics_per_node, nic_bandwidth);
  routes_ = std::make_shared<const GraphRoutes>(graph, route_policy(spec, *graph));
  link_count_ = routes_->graph().link_count();
}

Fabric::Fabric(const FabricSpec& spec, std::shared_ptr<const ClusterGraph> graph)
    : spec_(with_graph(spec, std::move(graph))),
      nodes_(spec_.graph->nodes()),
      nics_(most_nics(*spec_.graph)),
      nic_bandwidth_(spec_.graph->capacity()[0]) {
  assert(!check(spec_, nodes_, 1, nic_bandwidth_));
  const auto drawn = draw_fabric(spec_, nodes_, nics_, nic_bandwidth_);
  routes_ = std::make_shared<const GraphRoutes>(drawn, route_policy(spec_, *drawn));
  link_count_ = routes_->graph().link_count();
}

void Fabric::number_tree() {
  counts_ = fabric_counts(spec_, nodes_, nics_, nic_bandwidth_);
  spray_ = spec_.routing != Routing::ecmp;
  hash_salt_ = hash_salt(spec_.hash_draw);
  const FabricCounts& c = counts_;
  if (c.leaf_uplinks > 0) leaf_links_ = link_number(c.leaves * (spray_ ? 1 : c.leaf_uplinks));
  if (c.spine_uplinks > 0) {
    spine_links_ = link_number(c.pods * (spray_ ? 1 : c.spines * c.spine_uplinks));
  }
  nic_ports_ = link_number(nodes_ * nics_);
  link_count_ = 2 * (nic_ports_ + leaf_links_ + spine_links_);
}

std::shared_ptr<const ClusterGraph> Fabric::graph() const {
  assert(is_drawn());
  return routes_->shared_graph();
}

// Numbers: all NIC ups, all NIC downs, leaf ups, leaf downs, spine ups, spine downs.
FabricLink Fabric::nic_up(int node, int nic) const {
  assert(node >= 0 && node < nodes_ && nic >= 0 && nic < nics_);
  if (routes_) return routes_->graph().first_link()[routes_->graph().nic_port(node, nic)];
  return link_number(node * nics_ + nic);
}
FabricLink Fabric::nic_down(int node, int nic) const {
  const FabricLink up = nic_up(node, nic);
  return routes_ ? routes_->graph().reverse(up) : nic_ports_ + up;
}

void Fabric::nic_ups(int node, int nic, std::vector<RouteHop>& out) const {
  if (!routes_) return out.push_back({nic_up(node, nic), 1});
  add_port_links(routes_->graph(), routes_->graph().nic_port(node, nic), true, out);
}
void Fabric::nic_downs(int node, int nic, std::vector<RouteHop>& out) const {
  if (!routes_) return out.push_back({nic_down(node, nic), 1});
  add_port_links(routes_->graph(), routes_->graph().nic_port(node, nic), false, out);
}

FabricLink Fabric::leaf_up(int leaf, int uplink) const {
  return 2 * nic_ports_ + link_number(spray_ ? leaf : leaf * counts_.leaf_uplinks + uplink);
}
FabricLink Fabric::leaf_down(int leaf, int uplink) const {
  return leaf_links_ + leaf_up(leaf, uplink);
}
FabricLink Fabric::spine_up(int pod, int spine, int uplink) const {
  const int in_layer =
      spray_ ? pod : (pod * counts_.spines + spine) * counts_.spine_uplinks + uplink;
  return 2 * (nic_ports_ + leaf_links_) + link_number(in_layer);
}
FabricLink Fabric::spine_down(int pod, int spine, int uplink) const {
  return spine_links_ + spine_up(pod, spine, uplink);
}

BytesPerSecond Fabric::capacity(FabricLink link) const {
  assert(link < link_count_);
  if (routes_) return routes_->graph().capacity()[link];
  const FabricCounts& c = counts_;
  if (link < 2 * nic_ports_) return nic_bandwidth_;
  if (link < 2 * (nic_ports_ + leaf_links_)) {
    return (spray_ ? c.leaf_uplinks : 1) * c.leaf_link_capacity;
  }
  return (spray_ ? c.spines * c.spine_uplinks : 1) * c.spine_link_capacity;
}

bool Fabric::joins_nic(FabricLink link) const {
  if (!routes_) return link < 2 * nic_ports_;
  const ClusterGraph& graph = routes_->graph();
  return std::min(graph.source()[link], graph.target()[link]) < graph.port_count();
}

std::string Fabric::link_name(FabricLink link) const {
  assert(link < link_count_);
  if (routes_) return drawn_link_name(routes_->graph(), link);
  const FabricCounts& c = counts_;
  const auto per_node = link_number(nics_);
  if (link < 2 * nic_ports_) {
    const FabricLink port = link % nic_ports_;
    return fmt::format("node {} nic {} {}", port / per_node, port % per_node,
                       link < nic_ports_ ? "up" : "down");
  }
  link -= 2 * nic_ports_;
  const bool at_leaf = link < 2 * leaf_links_;
  if (!at_leaf) link -= 2 * leaf_links_;
  const FabricLink layer = at_leaf ? leaf_links_ : spine_links_;
  const bool up = link < layer;
  link %= layer;
  std::string below, above;
  if (spray_) {
    below = fmt::format("{} {}", at_leaf ? "leaf" : "pod", link);
    above = at_leaf ? "spines" : "cores";
  } else {
    const int uplinks = at_leaf ? c.leaf_uplinks : c.spine_uplinks;
    const int switches = at_leaf ? c.spines : c.cores;  // above, per group
    const int lower = static_cast<int>(link) / uplinks;
    const int group = at_leaf ? pod_of(lower) : lower % c.spines;
    const int uplink = static_cast<int>(link) % uplinks;
    const int parallel = uplinks / switches;
    below = fmt::format("{} {}", at_leaf ? "leaf" : "spine", lower);
    above = fmt::format("{} {}", at_leaf ? "spine" : "core", group * switches + uplink / parallel);
    if (parallel > 1) (up ? above : below) += fmt::format(" link {}", uplink % parallel);
  }
  return up ? below + " to " + above : above + " to " + below;
}

int Fabric::leaf_of(int node, int nic) const {
  assert(node >= 0 && node < nodes_ && nic >= 0 && nic < nics_);
  const int unit = node / counts_.unit_nodes;
  return spec_.kind == FabricKind::rail_optimised ? unit * nics_ + nic : unit;
}

int Fabric::switches_crossed(int from_node, int from_nic, int to_node, int to_nic) const {
  if (spec_.pxn) {
    if (from_node == to_node) return 0;
    from_nic = to_nic;
  }
  if (from_node == to_node && from_nic == to_nic) return 0;
  if (routes_) {
    const ClusterGraph& graph = routes_->graph();
    return routes_->switches_crossed(graph.nic_port(from_node, from_nic),
                                     graph.nic_port(to_node, to_nic));
  }
  const int from = leaf_of(from_node, from_nic);
  const int to = leaf_of(to_node, to_nic);
  if (from == to) return 1;
  return pod_of(from) == pod_of(to) ? 3 : 5;
}

/// The path of one queue pair between two leaves.
template <class Use>
void Fabric::hashed_hops(const FabricPort& from, const FabricPort& to, std::uint64_t queue_pair,
                         Use use) const {
  const FabricCounts& c = counts_;
  const std::uint64_t flow = flow_hash(from.number, to.number, nic_ports_, queue_pair, hash_salt_);
  const auto pick = [&](HashLayer layer, int switch_number, int links) {
    if (links == 1) return 0;  // as the hash says, without it
    return static_cast<int>(pick_link(flow, spec_.hash_seed, layer,
                                      static_cast<std::uint32_t>(switch_number),
                                      static_cast<std::uint32_t>(links)));
  };
  const int uplink = pick(HashLayer::leaf, from.leaf, c.leaf_uplinks);
  const bool single = c.leaf_uplinks == c.spines;  // one cable to each spine: no division
  const int per_spine = single ? 1 : c.leaf_uplinks / c.spines;
  const int spine = single ? uplink : uplink / per_spine;
  use(from.number);
  use(leaf_up(from.leaf, uplink));
  if (from.pod != to.pod) {
    const int from_spine = from.pod * c.spines + spine;
    const int spine_uplink = pick(HashLayer::spine_up, from_spine, c.spine_uplinks);
    const int per_core = c.spine_uplinks / c.cores;
    const int core = spine_uplink / per_core;
    const int core_link = pick(HashLayer::core, spine * c.cores + core, per_core);
    use(spine_up(from.pod, spine, spine_uplink));
    use(spine_down(to.pod, spine, core * per_core + core_link));
  }
  const int to_spine = to.pod * c.spines + spine;
  const int down = pick(HashLayer::spine_down, to_spine, per_spine);
  use(leaf_down(to.leaf, spine * per_spine + down));
  use(nic_ports_ + to.number);
}

/// What a message crosses in a whole tree; a link once for each queue pair.
template <class Use>
void Fabric::for_each_hop(const FabricPort& from, const FabricPort& to, std::uint64_t queue_pair,
                          Use use) const {
  if (from.leaf != to.leaf && !spray_) {
    const auto pairs = static_cast<std::uint64_t>(spec_.queue_pairs);
    if (pairs == 1) {
      return hashed_hops(from, to, queue_pair, [&use](FabricLink link) { use(link, 1); });
    }
    const double share = 1 / static_cast<double>(pairs);
    for (std::uint64_t i = 0; i < pairs; ++i) {
      hashed_hops(from, to, queue_pair * pairs + i,
                  [&use, share](FabricLink link) { use(link, share); });
    }
    return;
  }
  use(from.number, 1);
  if (from.leaf != to.leaf) {
    use(leaf_up(from.leaf, 0), 1);
    if (from.pod != to.pod) {
      use(spine_up(from.pod, 0, 0), 1);
      use(spine_down(to.pod, 0, 0), 1);
    }
    use(leaf_down(to.leaf, 0), 1);
  }
  use(nic_ports_ + to.number, 1);
}

void Fabric::route(int from_node, int from_nic, int to_node, int to_nic, std::uint64_t queue_pair,
                   std::vector<RouteHop>& out) const {
  if (spec_.pxn) {
    if (from_node == to_node) return;
    from_nic = to_nic;
  }
  if (routes_) {
    const ClusterGraph& graph = routes_->graph();
    return routes_->route(graph.nic_port(from_node, from_nic), graph.nic_port(to_node, to_nic),
                          queue_pair, out);
  }
  const FabricPort from = port(from_node, from_nic);
  const FabricPort to = port(to_node, to_nic);
  if (from.number == to.number) return;
  const std::size_t begin = out.size();
  for_each_hop(from, to, queue_pair,
               [&out](FabricLink link, double share) { out.push_back({link, share}); });
  if (!spray_ && spec_.queue_pairs > 1 && from.leaf != to.leaf) merge_hops(out, begin);
}

FabricPort Fabric::port(int node, int nic) const {
  const int leaf = leaf_of(node, nic);
  return {.number = nic_up(node, nic), .leaf = leaf, .pod = pod_of(leaf)};
}

void Fabric::add_load(const FabricPort& from, const FabricPort& to, double bytes,
                      std::span<double> load, std::vector<FabricLink>& loaded) const {
  assert(!is_drawn() && spray_ && load.size() >= link_count_ && from.number != to.number);
  for_each_hop(from, to, 0, [&](FabricLink link, double share) {
    double& sum = load[link];
    if (sum == 0) loaded.push_back(link);
    sum += bytes * share;
  });
}

void Fabric::add_loads(std::span<const FabricPort> from, std::span<const FabricPort> to,
                       std::uint64_t queue_pair, std::span<double> load,
                       std::vector<FabricLink>& loaded) const {
  assert(!is_drawn() && from.size() == to.size() && load.size() >= link_count_);
  for (std::size_t i = 0; i < from.size();) {
    const FabricPort source = from[i];  // what its switch adds to hashes is the same for all of it
    for (; i < from.size() && from[i].number == source.number; ++i) {
      assert(source.number != to[i].number);
      for_each_hop(source, to[i], queue_pair, [load, &loaded](FabricLink link, double share) {
        double& sum = load[link];
        if (sum == 0) loaded.push_back(link);
        sum += share;
      });
    }
  }
}

}  // namespace lockstep
