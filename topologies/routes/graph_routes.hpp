/// Routes over any graph: by spraying, hashing, capacity or given tables. No pair of NICs has a
/// table entry: distances to every leaf say which links start a shortest way, and a route is found
/// on the fly.
///
/// Left out: deadlock and the virtual channels that avoid it (a flow has no buffers), and the load
/// that a real adaptive switch sees.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "topologies/graph/cluster_graph.hpp"
#include "topologies/routes/distances.hpp"
#include "topologies/routes/forwarding_tables.hpp"
#include "topologies/routes/spread.hpp"
#include "topologies/spec/fabric_spec.hpp"

namespace lockstep {

/// Of FabricSpec: how messages find their ways.
struct RoutePolicy {
  Routing routing = Routing::spray;
  HashSeed hash_seed = HashSeed::per_switch;
  int hash_draw = 1;
  int queue_pairs = 1;
  double nonminimal_share = 0;                          ///< of adaptive traffic between groups
  std::shared_ptr<const ForwardingTables> tables = {};  ///< if any, they decide
};

class GraphRoutes {
 public:
  /// Requires a graph without cables between two NIC ports.
  GraphRoutes(std::shared_ptr<const ClusterGraph> graph, const RoutePolicy& policy);

  [[nodiscard]] const ClusterGraph& graph() const { return *graph_; }
  [[nodiscard]] std::shared_ptr<const ClusterGraph> shared_graph() const { return graph_; }
  [[nodiscard]] const PortDistances& distances() const { return distances_; }

  /// Whether messages between two ports find a way.
  [[nodiscard]] bool reaches(Vertex from, Vertex to) const;
  /// Appends what a message crosses, each link once; a single path in its order. Requires
  /// reaches(); the same port: nothing.
  void route(Vertex from, Vertex to, std::uint64_t queue_pair, std::vector<RouteHop>& out) const;
  /// Switches on a shortest way, or on that of the tables. Requires reaches().
  [[nodiscard]] int switches_crossed(Vertex from, Vertex to) const;

 private:
  void hashed(Vertex from, Vertex to, std::uint64_t queue_pair, double share,
              std::vector<RouteHop>& out) const;
  void spread(Vertex from, Vertex to, std::vector<RouteHop>& out) const;
  /// Through every other group alike.
  void detour(Vertex from, Vertex to, double share, std::vector<RouteHop>& out) const;
  /// Calls use(link) along the way of the tables; false: it ends on the way or goes round.
  template <class Use>
  bool follow_tables(Vertex from, Vertex to, Use use) const;

  [[nodiscard]] Goal goal(Vertex port) const { return {distances_.row(port), port}; }
  [[nodiscard]] int group_of(Vertex port) const;
  [[nodiscard]] bool detours(Vertex from, Vertex to) const;

  std::shared_ptr<const ClusterGraph> graph_;
  RoutePolicy policy_;
  PortDistances distances_;
  std::vector<std::uint32_t> number_;  ///< of a vertex in its layer
  std::size_t groups_ = 0;
  SetDistances group_distances_;
};

}  // namespace lockstep
