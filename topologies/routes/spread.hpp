/// Splits a message over all shortest ways to where it goes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "topologies/graph/cluster_graph.hpp"
#include "topologies/spec/fabric_spec.hpp"

namespace lockstep {

/// Where a message goes, and how far each switch is from there.
struct Goal {
  static constexpr Vertex kNoPort = ~Vertex{0};
  std::span<const std::uint8_t> distance;  ///< by switch, from the first one
  Vertex port = kNoPort;  ///< a NIC port, at distance 0; none: the switches at distance 0
};

/// The links of a switch to switches that a NIC port hangs on, from the port's side, in their
/// order: few of a spine's links are, where it has one for each leaf.
template <class Use>
void for_links_towards_leaves(const ClusterGraph& graph, Vertex at, Vertex port, Use use) {
  const auto first = graph.first_link();
  std::vector<GraphLink> found;
  for (GraphLink i = first[port]; i < first[port + 1]; ++i) {
    const Vertex leaf = graph.target()[i];
    for (GraphLink j = first[leaf]; j < first[leaf + 1]; ++j) {
      if (graph.target()[j] == at) found.push_back(graph.reverse(j));
    }
  }
  std::ranges::sort(found);
  const auto twice = std::ranges::unique(found);  // the port may have two cables to a leaf
  found.erase(twice.begin(), twice.end());
  for (const GraphLink link : found) use(link);
}

/// Calls use(link) for each link of `at` that starts a shortest way to the goal, in the order of
/// the links; none where there is no way.
template <class Use>
void for_next_links(const ClusterGraph& graph, Vertex at, const Goal& goal, Use use) {
  const GraphLink first = graph.first_link()[at], end = graph.first_link()[at + 1];
  const Vertex ports = graph.port_count();
  const auto far = [&](Vertex v) { return goal.distance[v - ports]; };
  constexpr int kNowhere = 255;
  int next = kNowhere;
  if (at >= ports) {
    next = far(at) - 1;
    if (next == 0 && goal.port != Goal::kNoPort) {
      // From the port's side, which has few links where a switch may have one for each node.
      const GraphLink last = graph.first_link()[goal.port + 1];
      for (GraphLink i = graph.first_link()[goal.port]; i < last; ++i) {
        if (graph.target()[i] == at) use(graph.reverse(i));
      }
      return;
    }
    constexpr GraphLink kMany = 256;
    if (next == 1 && goal.port != Goal::kNoPort && end - first > kMany) {
      for_links_towards_leaves(graph, at, goal.port, use);
      return;
    }
  } else {
    for (GraphLink i = first; i < end; ++i) {
      const int there = far(graph.target()[i]);
      if (there < next) next = there;
    }
  }
  if (next < 0 || next >= kNowhere - (at >= ports ? 1 : 0)) return;
  for (GraphLink i = first; i < end; ++i) {
    const Vertex to = graph.target()[i];
    if (to >= ports && far(to) == next) use(i);
  }
}

/// One message, or parts of one that wait at several vertices, on its way to a goal.
///
/// Evenly: every switch splits what it gets over the links that start a shortest way, as switches
/// do that spray packets. By capacity: in proportion to the capacity from there on, so that
/// missing and slow cables further on get less; the capacity beyond a link is the smaller of its
/// own and that of all ways beyond it, NIC links apart (those count where a NIC splits over its
/// planes). No other traffic is looked at.
class MessageSpread {
 public:
  explicit MessageSpread(const ClusterGraph& graph) : graph_(graph) {}

  /// Begins anew. The goal's memory stays the caller's.
  void aim(const Goal& goal);
  /// A part of the message waits at a vertex from which the goal can be reached.
  void add(Vertex at, double share);
  /// Sends all parts to the goal. Appends the links they cross, each once.
  void send(bool by_capacity, std::vector<RouteHop>& hops);

  /// After send(): calls arrived(vertex, share) for all places at the goal.
  template <class Arrived>
  void for_arrivals(Arrived arrived) const {
    if (levels_.empty()) return;
    for (const Stop& stop : levels_.front()) arrived(stop.at, stop.share);
  }

 private:
  struct Stop {
    Vertex at;
    double share;
    double beyond = 0;  ///< capacity of the ways from here, in bytes per second
    double last = 0;    ///< of the links into the goal's port at their ends
  };
  using Level = std::vector<Stop>;

  [[nodiscard]] std::size_t distance(Vertex at) const;
  static void merge(Level& level);
  static Stop& find(Level& level, Vertex at);
  void discover();
  void measure();
  [[nodiscard]] double weight(GraphLink link, const Stop& next) const;

  const ClusterGraph& graph_;
  Goal goal_;
  std::vector<Level> levels_;  ///< by distance from the goal
};

}  // namespace lockstep
