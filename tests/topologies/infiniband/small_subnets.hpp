/// Subnets that several tests of this folder route, and what they measure on the routes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "models/base/text_file.hpp"
#include "topologies/fabrics/graph_of_fabric.hpp"
#include "topologies/infiniband/forwarding.hpp"

namespace lockstep::test {

constexpr BytesPerSecond kHdr = gigabits_per_second(200);

/// A file of tests/reference/infiniband.
inline std::string sample(const std::string& name) {
  return read_text_file(LOCKSTEP_SOURCE_DIR "/tests/reference/infiniband/" + name);
}

/// Three layers of switches with k ports, k^3 / 4 hosts.
inline InfinibandSubnet k_ary_tree(int k) {
  FabricSpec spec;
  spec.kind = FabricKind::fat_tree;
  spec.levels = 3;
  spec.leaf_ports_down = k / 2;
  spec.pod_leaves = k / 2;
  spec.switch_ports = k;
  return infiniband_subnet(graph_of(Fabric(spec, k * k * k / 4, 1, kHdr)), "tree");
}

/// NIC i of all nodes on leaf i; spines of as many ports as a leaf, with parallel cables if need
/// be.
inline InfinibandSubnet rails(int nodes, int nics) {
  FabricSpec spec;
  spec.kind = FabricKind::rail_optimised;
  spec.levels = 2;
  spec.leaf_ports_down = nodes;
  spec.switch_ports = 2 * nodes;
  return infiniband_subnet(graph_of(Fabric(spec, nodes, nics, kHdr)), "rails");
}

/// Links from one NIC port to another by the tables; empty: they lead nowhere.
inline std::vector<GraphLink> path(const ClusterGraph& graph, const ForwardingTables& tables,
                                   Vertex from, Vertex to) {
  std::vector<GraphLink> links{graph.first_link()[from]};
  while (graph.target()[links.back()] != to) {
    const Vertex at = graph.target()[links.back()];
    if (graph.vertices()[at].is_port() || links.size() > graph.vertex_count()) return {};
    const GraphLink next = tables.egress(at, to);
    if (next == kNoRoute) return {};
    links.push_back(next);
  }
  return links;
}

/// A shift sends from every port to the one `distance` further on. How many of its messages cross
/// each link, how many links they cross in all, and how many of them arrive.
struct ShiftLoads {
  std::vector<int> load;
  std::uint64_t hops = 0;
  std::uint32_t arrived = 0;
  [[nodiscard]] int most() const { return *std::ranges::max_element(load); }
  friend bool operator==(const ShiftLoads&, const ShiftLoads&) = default;
};

inline ShiftLoads shift_loads(const ClusterGraph& graph, const ForwardingTables& tables,
                              std::uint32_t distance) {
  ShiftLoads out{.load = std::vector<int>(graph.link_count(), 0)};
  const std::uint32_t n = graph.port_count();
  for (Vertex from = 0; from < n; ++from) {
    const auto links = path(graph, tables, from, (from + distance) % n);
    for (const GraphLink link : links) ++out.load[link];
    out.hops += links.size();
    out.arrived += links.empty() ? 0 : 1;
  }
  return out;
}

/// The subnet without one cable; addresses stay.
inline InfinibandSubnet without_cable(const InfinibandSubnet& subnet, std::uint32_t cable) {
  std::vector<GraphVertex> vertices(subnet.graph.vertices().begin(), subnet.graph.vertices().end());
  std::vector<GraphCable> cables(subnet.graph.cables().begin(), subnet.graph.cables().end());
  cables.erase(cables.begin() + cable);
  InfinibandSubnet out = subnet;
  out.graph = ClusterGraph(std::move(vertices), std::move(cables));
  return out;
}

/// The first cable between two switches.
inline std::uint32_t first_uplink(const ClusterGraph& graph) {
  std::uint32_t cable = 0;
  while (graph.vertices()[graph.cables()[cable].a].is_port() ||
         graph.vertices()[graph.cables()[cable].b].is_port()) {
    ++cable;
  }
  return cable;
}

/// All that an import can know of a subnet, by names: equal means the same fabric.
struct Described {
  using Box = std::tuple<InfinibandKind, std::uint64_t, std::uint64_t, Lid, int, int, int, int>;
  using End = std::pair<std::string, int>;
  std::map<std::string, Box> boxes;
  std::map<std::pair<End, End>, double> cables;
  friend bool operator==(const Described&, const Described&) = default;
};

inline Described describe(const InfinibandSubnet& subnet) {
  Described out;
  const ClusterGraph& graph = subnet.graph;
  for (Vertex v = 0; v < graph.vertex_count(); ++v) {
    const InfinibandVertex& at = subnet.vertices[v];
    const GraphVertex& vertex = graph.vertices()[v];
    out.boxes[vertex.name] = {at.kind, at.node_guid, at.port_guid, at.lid,
                              at.port, vertex.node,  vertex.nic,   vertex.level};
  }
  for (const GraphCable& cable : graph.cables()) {
    Described::End a{graph.vertex_name(cable.a), cable.port_a};
    Described::End b{graph.vertex_name(cable.b), cable.port_b};
    if (b < a) std::swap(a, b);
    out.cables[{a, b}] = cable.capacity.base_units();
  }
  return out;
}

/// How many entries of two sets of tables differ.
inline std::uint64_t differing_entries(const LidTables& a, const LidTables& b) {
  std::uint64_t n = 0;
  for (std::size_t v = 0; v < std::max(a.out_port.size(), b.out_port.size()); ++v) {
    if (v >= a.out_port.size() || v >= b.out_port.size() ||
        a.out_port[v].size() != b.out_port[v].size()) {
      ++n;
      continue;
    }
    for (std::size_t lid = 0; lid < a.out_port[v].size(); ++lid) {
      n += a.out_port[v][lid] != b.out_port[v][lid] ? 1 : 0;
    }
  }
  return n;
}

}  // namespace lockstep::test
