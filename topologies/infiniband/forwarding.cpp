#include "topologies/infiniband/forwarding.hpp"

#include <algorithm>
#include <array>
#include <cassert>

#include "topologies/infiniband/switch_fabric.hpp"

namespace lockstep {

LidTables empty_tables(const InfinibandSubnet& subnet) {
  Lid last = 0;
  for (const InfinibandVertex& at : subnet.vertices) last = std::max(last, at.lid);
  LidTables tables;
  for (const InfinibandVertex& at : subnet.vertices) {
    auto& row = tables.out_port.emplace_back();
    if (at.kind == InfinibandKind::switch_box) row.assign(std::size_t{last} + 1, kNoPath);
  }
  return tables;
}

namespace {

void choose_shortest(const SwitchFabric& fabric, SwitchIndex to, PortChoices& choices) {
  const auto far = fabric.distances(to);
  for (SwitchIndex s = 0; s < fabric.switches(); ++s) {
    const auto& ports = fabric.ports(s);
    choices[s].clear();
    for (std::size_t port = 1; port < ports.size() && far[s] != SwitchFabric::kFar; ++port) {
      if (ports[port].leads_to_switch() && far[ports[port].far_switch] + 1 == far[s]) {
        choices[s].push_back(static_cast<std::uint8_t>(port));
      }
    }
  }
}

constexpr std::array kEngines{
    InfinibandEngine{
        "minhop", "Shortest paths, destinations spread evenly over equal ports.",
        "opensm 3.3.23, osm_ucast_mgr.c",
        [](const InfinibandSubnet& subnet, std::span<const Vertex>) { return minhop(subnet); }},
    InfinibandEngine{"updn", "Shortest paths that go up before they go down: no credit loops.",
                     "opensm 3.3.23, osm_ucast_updn.c", updn},
    InfinibandEngine{"ftree", "Fat trees, destination by destination: shifts do not collide.",
                     "opensm 3.3.23, osm_ucast_ftree.c; Zahavi et al. 2010, Concurrency and "
                     "Computation 22, 217-231",
                     ftree},
};

}  // namespace

InfinibandRouting minhop(const InfinibandSubnet& subnet) {
  const SwitchFabric fabric(subnet);
  const auto choose = [&](SwitchIndex to, PortChoices& choices) {
    choose_shortest(fabric, to, choices);
  };
  return {.tables = balanced_tables(fabric, choose), .engine = "minhop", .refusal = ""};
}

std::span<const InfinibandEngine> infiniband_engines() { return kEngines; }

ForwardingTables forwarding_tables(const InfinibandSubnet& subnet, const LidTables& tables) {
  const ClusterGraph& graph = subnet.graph;
  const PortMap map(subnet);
  ForwardingTables out(graph);
  for (Vertex v = graph.port_count(); v < graph.vertex_count(); ++v) {
    const auto& row = tables.out_port[v];
    for (Vertex to = 0; to < graph.port_count(); ++to) {
      const Lid lid = subnet.vertices[to].lid;
      if (lid >= row.size() || row[lid] == 0 || row[lid] > map.ports(v)) continue;
      const GraphLink link = map.link(v, row[lid]);
      if (link != PortMap::kNoLink) out.set(v, to, link);
    }
  }
  return out;
}

}  // namespace lockstep
