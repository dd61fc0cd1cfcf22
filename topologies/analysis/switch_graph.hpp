/// A drawn fabric folded for analysis: parallel cables become one edge with a count, and NICs that
/// hang on the same switches one class. Small where the fabric is large: 16,384 NICs of a
/// rail-optimised fabric are 512 classes.
#pragma once

#include <cstdint>
#include <vector>

#include "topologies/graph/cluster_graph.hpp"

namespace lockstep {

struct SwitchGraph {
  struct Edge {
    int to = 0;      ///< a switch, or, in `below`, a class
    int cables = 0;  ///< parallel ones; to or from a class: of each of its NICs
  };
  /// NICs with the same cables to the same switches.
  struct NicClass {
    std::vector<Vertex> nics;
    std::vector<Edge> switches;
  };
  /// Hosts whose NICs are of the same classes.
  struct HostClass {
    std::vector<int> nodes;
    std::vector<int> classes;
  };

  explicit SwitchGraph(const ClusterGraph& graph);

  std::vector<Vertex> vertex;            ///< of each switch
  std::vector<std::vector<Edge>> edges;  ///< by switch: to other switches
  std::vector<std::vector<Edge>> below;  ///< by switch: to classes
  std::vector<NicClass> classes;         ///< class with NICs first in order first
  std::vector<HostClass> hosts;
  std::vector<std::vector<int>> hosts_of_class;  ///< indices into `hosts`
  /// Cables straight from NIC to NIC, which no class has.
  int direct_cables = 0;

  [[nodiscard]] int switches() const { return static_cast<int>(vertex.size()); }
};

}  // namespace lockstep
