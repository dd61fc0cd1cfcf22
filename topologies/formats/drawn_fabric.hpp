/// A fabric that somebody drew: read from a file or written out by a builder, with the names that
/// its hosts have. Every importer makes one of these, every exporter and the picture read one.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "topologies/graph/cluster_graph.hpp"
#include "topologies/spec/fabric_spec.hpp"

namespace lockstep {

/// How a fabric carries messages, which cables do not tell. Absent: the source does not say.
struct FabricCarriage {
  std::optional<Routing> routing;
  std::optional<HashSeed> hash_seed;
  std::optional<int> hash_draw;
  std::optional<int> queue_pairs;
  std::optional<bool> pxn;
  std::optional<double> nonminimal_share;
  std::optional<Seconds> switch_latency;
  std::string transport;  ///< preset name; empty: not said
  friend bool operator==(const FabricCarriage&, const FabricCarriage&) = default;
};
/// "routing ecmp, 600 ns per switch, transport infiniband"; empty: nothing is known.
std::string words_of(const FabricCarriage& carriage);

struct DrawnFabric {
  std::string about;               ///< empty: nothing was said
  std::string source;              ///< where it is from: "ibnetdiscover fabric.txt"
  std::vector<std::string> hosts;  ///< by node of the graph
  ClusterGraph graph;
  /// Cables that are known and carry nothing: drawn and written, but no part of `graph`.
  std::vector<GraphCable> down;
  /// What the source does not tell and was assumed instead, a sentence each.
  std::vector<std::string> assumptions;
  FabricCarriage carriage = {};
};

/// Of a graph that a builder made: hosts are called "node0", "node1", ...
DrawnFabric drawn_fabric(ClusterGraph graph, std::string source);

/// What a sketch of a fabric calls a host, and what it calls a NIC or switch.
using SketchHost = std::uint32_t;
using SketchVertex = std::uint32_t;

/// Collects hosts, NICs, switches and cables in whatever order a file has them. Names of NICs and
/// switches are unique among both, names of hosts among hosts: the caller asks find() first.
class FabricSketch {
 public:
  [[nodiscard]] std::optional<SketchHost> find_host(std::string_view name) const;
  [[nodiscard]] std::optional<SketchVertex> find(std::string_view name) const;

  SketchHost add_host(std::string name);
  /// NICs of a host are numbered in the order in which they are added.
  SketchVertex add_nic(SketchHost host, std::string name);
  /// Level -1: to be found by finish(), if no switch says its own.
  SketchVertex add_switch(std::string name, int level = -1, int group = -1);
  /// Requires two different vertices; `rate` above 0 unless the cable is down.
  void add_cable(const GraphCable& cable, bool down = false);

  [[nodiscard]] std::size_t hosts() const { return hosts_.size(); }
  [[nodiscard]] std::size_t vertices() const { return vertices_.size(); }
  [[nodiscard]] std::size_t cables() const { return cables_.size() + down_.size(); }
  [[nodiscard]] bool is_nic(SketchVertex vertex) const { return vertices_[vertex].host >= 0; }
  [[nodiscard]] const std::string& name(SketchVertex vertex) const {
    return vertices_[vertex].name;
  }

  /// Nodes in the order of the hosts. Where no switch has a level, a switch's is the number of
  /// cables between it and the nearest NIC; one that reaches no NIC has none.
  [[nodiscard]] DrawnFabric finish() const;

 private:
  struct Entry {
    std::string name;
    int host = -1;  ///< of a NIC
    int nic = -1;
    int level = -1;  ///< of a switch
    int group = -1;  ///< of a switch
  };
  std::vector<std::string> hosts_;
  std::vector<int> nics_;  ///< by host
  std::vector<Entry> vertices_;
  std::vector<GraphCable> cables_;
  std::vector<GraphCable> down_;
  std::map<std::string, SketchHost, std::less<>> host_by_name_;
  std::map<std::string, SketchVertex, std::less<>> vertex_by_name_;
};

}  // namespace lockstep
