#include "sim/packet/fabric_packets.hpp"

#include <algorithm>
#include <cassert>
#include <set>

#include "topologies/fabrics/graph_of_fabric.hpp"
#include "topologies/graph/cluster_graph.hpp"

namespace lockstep {
namespace {

std::vector<LinkIndex> path_of(const Fabric& fabric, PortNumber from, PortNumber to,
                               std::uint64_t queue_pair) {
  const int nics = fabric.nics_per_node();
  std::vector<RouteHop> hops;
  fabric.route(from / nics, from % nics, to / nics, to % nics, queue_pair, hops);
  std::vector<LinkIndex> path;
  for (const RouteHop& hop : hops) {
    assert(hop.share == 1 && "one queue pair takes one path");
    path.push_back(hop.link);
  }
  return path;
}

bool uses_any(const std::vector<LinkIndex>& path, std::span<const LinkIndex> links) {
  return std::ranges::any_of(
      path, [&](LinkIndex link) { return std::ranges::find(links, link) != links.end(); });
}

}  // namespace

PacketNetwork packet_network(const Fabric& fabric, Seconds cable_latency) {
  assert(fabric.spec().routing == Routing::ecmp);
  const ClusterGraph graph = graph_of(fabric);
  PacketNetwork network;
  network.links.resize(fabric.link_count());
  for (GraphLink link = 0; link < graph.link_count(); ++link) {
    const FabricLink number = graph.fabric_link()[link];
    network.links[number] = {fabric.capacity(number), cable_latency, graph.source()[link],
                             graph.target()[link]};
  }
  for (const GraphVertex& vertex : graph.vertices()) {
    network.forwarding.push_back(vertex.is_port() ? Seconds{} : fabric.spec().switch_latency);
  }
  return network;
}

std::vector<LinkIndex> hashed_path(const Fabric& fabric, PortNumber from, PortNumber to,
                                   std::uint64_t queue_pair, std::span<const LinkIndex> dead) {
  constexpr std::uint64_t kHashes = 1000;
  // Far from the numbers that callers give to their own queue pairs.
  constexpr std::uint64_t kStep = std::uint64_t{1} << 32U;
  for (std::uint64_t i = 0; i < kHashes; ++i) {
    std::vector<LinkIndex> path = path_of(fabric, from, to, queue_pair + i * kStep);
    if (!uses_any(path, dead)) return path;
  }
  return {};
}

std::vector<std::vector<LinkIndex>> all_paths(const Fabric& fabric, PortNumber from, PortNumber to,
                                              std::span<const LinkIndex> dead) {
  // With n equal paths, one of them stays unseen for 30 n hashes with probability exp(-30).
  constexpr std::uint64_t kHashesPerPath = 30;
  std::set<std::vector<LinkIndex>> paths;
  for (std::uint64_t pair = 0; pair <= kHashesPerPath * (1 + paths.size()); ++pair) {
    std::vector<LinkIndex> path = path_of(fabric, from, to, pair);
    if (!uses_any(path, dead)) paths.insert(std::move(path));
  }
  return {paths.begin(), paths.end()};
}

}  // namespace lockstep
