/// A fabric written out cable by cable as a directed graph: what builders and importers make, what
/// routing on any graph, exports and analysis read, and, for fabrics whose routes are arithmetic,
/// the obvious version that the arithmetic of fabric.hpp is tested against.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "models/base/units.hpp"

namespace lockstep {

using Vertex = std::uint32_t;
/// A directed link of a graph, dense number from 0.
using GraphLink = std::uint32_t;

/// A NIC port of a node, or a switch.
struct GraphVertex {
  std::string name;  ///< "node 3 nic 1", "leaf 2", or what the import calls it; unique
  int level = -1;    ///< 0: NIC port; 1, 2, ...: layer of switches from below; -1: in no layer
  int node = -1;     ///< of a NIC port; -1: a switch
  int nic = -1;      ///< of a NIC port
  int group = -1;    ///< of a switch: the pod or dragonfly group that it belongs to; -1: to none
  [[nodiscard]] bool is_port() const { return node >= 0; }
};

/// Full duplex: two directed links.
struct GraphCable {
  Vertex a = 0, b = 0;
  BytesPerSecond capacity;  ///< each way
  int port_a = 0;           ///< number on the box at end a, from 1; 0: in the order of the cables
  int port_b = 0;
};

/// Compressed sparse rows: the links that leave vertex v are first_link[v] up to first_link[v + 1],
/// in the order of their cables. NIC ports come first, by node and NIC; parallel cables are links
/// of their own.
class ClusterGraph {
 public:
  /// Requires ports before switches and in ascending (node, nic), known ends, no cable from a
  /// vertex to itself, capacities above 0. Nodes may have different numbers of NICs; parts may be
  /// unconnected.
  /// `names`: what a Fabric calls the two links of each cable, a to b first; empty: as the graph
  /// does.
  ClusterGraph(std::vector<GraphVertex> vertices, std::vector<GraphCable> cables,
               std::span<const std::array<std::uint32_t, 2>> names = {});

  [[nodiscard]] std::uint32_t vertex_count() const {
    return static_cast<std::uint32_t>(vertices_.size());
  }
  [[nodiscard]] std::uint32_t port_count() const { return ports_; }
  [[nodiscard]] std::uint32_t link_count() const {
    return static_cast<std::uint32_t>(target_.size());
  }
  [[nodiscard]] std::span<const GraphVertex> vertices() const { return vertices_; }
  [[nodiscard]] std::span<const GraphCable> cables() const { return cables_; }
  [[nodiscard]] std::span<const std::uint32_t> first_link() const { return first_link_; }
  [[nodiscard]] std::span<const Vertex> source() const { return source_; }
  [[nodiscard]] std::span<const Vertex> target() const { return target_; }
  [[nodiscard]] std::span<const BytesPerSecond> capacity() const { return capacity_; }
  /// The cable of a link; links 2 of a cable: a to b and b to a.
  [[nodiscard]] std::span<const std::uint32_t> cable() const { return cable_; }
  [[nodiscard]] GraphLink a_to_b(std::uint32_t cable) const {
    return ways_[std::size_t{2} * cable];
  }
  [[nodiscard]] GraphLink b_to_a(std::uint32_t cable) const {
    return ways_[std::size_t{2} * cable + 1];
  }
  /// The same cable the other way.
  [[nodiscard]] GraphLink reverse(GraphLink link) const;
  /// What Fabric calls the link; the link itself where the graph was not made from one.
  [[nodiscard]] std::span<const std::uint32_t> fabric_link() const { return fabric_link_; }

  [[nodiscard]] int nodes() const { return static_cast<int>(first_port_.size()) - 1; }
  [[nodiscard]] int nics(int node) const;
  [[nodiscard]] Vertex nic_port(int node, int nic) const;
  [[nodiscard]] const std::string& vertex_name(Vertex vertex) const {
    return vertices_[vertex].name;
  }
  /// "leaf 2 to spine 0", with the port numbers where cables are parallel.
  [[nodiscard]] std::string link_name(GraphLink link) const;

  /// What neither the file that the graph was read from nor the scenario tells of how messages are
  /// carried, with what is taken instead: "routing: spray (fabric.json does not tell)".
  [[nodiscard]] std::span<const std::string> untold() const { return untold_; }
  void set_untold(std::vector<std::string> untold) { untold_ = std::move(untold); }

  /// Links on a shortest path to each vertex; -1: there is none.
  [[nodiscard]] std::vector<int> hops_from(Vertex start) const;
  /// Sets of vertices that all reach each other.
  [[nodiscard]] int strong_components() const;
  /// The most that can flow from the sources to the sinks together, to a byte per second. Requires
  /// disjoint sets. Under a second for fabrics of a hundred thousand cables.
  [[nodiscard]] BytesPerSecond max_flow(std::span<const Vertex> sources,
                                        std::span<const Vertex> sinks) const;
  /// max_flow() from the NICs of the first half of the nodes to those of the second (an odd node
  /// takes no part). Nodes are numbered leaf by leaf and pod by pod, so this cuts between leaves or
  /// pods where it can, as the narrowest even cuts do.
  [[nodiscard]] BytesPerSecond bisection() const;

 private:
  void index_ports();
  void index_links();

  std::vector<GraphVertex> vertices_;
  std::vector<GraphCable> cables_;
  std::uint32_t ports_ = 0;
  std::vector<Vertex> first_port_{0};  ///< by node, and one past the last
  std::vector<std::uint32_t> first_link_;
  std::vector<Vertex> source_;
  std::vector<Vertex> target_;
  std::vector<BytesPerSecond> capacity_;
  std::vector<std::uint32_t> cable_;
  std::vector<GraphLink> ways_;  ///< 2 per cable
  std::vector<std::uint32_t> fabric_link_;
  std::vector<std::string> untold_;
};

}  // namespace lockstep
