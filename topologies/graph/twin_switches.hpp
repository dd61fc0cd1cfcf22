/// Switches with the same neighbours, taken together: the leaves of a pod, the cores of a group.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "topologies/graph/cluster_graph.hpp"

namespace lockstep {

/// Two switches are twins where each other switch is joined to both by as much. To swap them
/// changes nothing but their names, and what hangs on them. So distances, shortest paths and
/// largest flows are the same over a graph of classes, as long as switches that a question singles
/// out are taken out of their classes: of all largest flows the mean under all swaps is one too. A
/// fat tree of a million NICs has 66,560 switches with 2 million cables between them, and 33,824
/// classes with 65,536 edges.
struct TwinSwitches {
  /// Each switch of a class is joined to each of the other class; no class to itself.
  struct Edge {
    int to = 0;
    std::int64_t weight = 0;  ///< between two switches, all their cables
  };
  /// `weight`: of a link, and of the same cable the other way; above 0.
  TwinSwitches(const ClusterGraph& graph, const std::function<std::int64_t(GraphLink)>& weight);

  std::vector<int> of;                   ///< class, by switch from the first on
  std::vector<std::int64_t> size;        ///< by class, those with the first switches first
  std::vector<std::vector<Edge>> edges;  ///< by class

  [[nodiscard]] std::size_t classes() const { return size.size(); }
  /// Pairs of switches that cables join.
  [[nodiscard]] std::size_t joined_pairs() const;
};

}  // namespace lockstep
