/// Static routes: which link a switch sends a message on, by its destination alone. Subnet managers
/// compute such tables (topologies/infiniband/), and dumps of real ones are read into them.
#pragma once

#include <cassert>
#include <cstdint>
#include <limits>
#include <vector>

#include "topologies/graph/cluster_graph.hpp"

namespace lockstep {

/// The entry of a switch that has no route to a destination.
constexpr GraphLink kNoRoute = std::numeric_limits<GraphLink>::max();

/// The egress link of every switch for every NIC port of a graph: a row of `ports` entries for each
/// switch, in the order of the vertices. 4 bytes an entry.
class ForwardingTables {
 public:
  ForwardingTables() = default;
  /// No routes yet.
  explicit ForwardingTables(const ClusterGraph& graph)
      : ports_(graph.port_count()),
        egress_(std::size_t{graph.vertex_count() - ports_} * ports_, kNoRoute) {}

  [[nodiscard]] std::uint32_t ports() const { return ports_; }
  [[nodiscard]] std::uint32_t switches() const {
    return ports_ == 0 ? 0 : static_cast<std::uint32_t>(egress_.size() / ports_);
  }
  /// The link on which switch `at` sends towards NIC port `destination`, both vertices of the
  /// graph.
  [[nodiscard]] GraphLink egress(Vertex at, Vertex destination) const {
    return egress_[index(at, destination)];
  }
  void set(Vertex at, Vertex destination, GraphLink link) {
    egress_[index(at, destination)] = link;
  }
  friend bool operator==(const ForwardingTables&, const ForwardingTables&) = default;

 private:
  [[nodiscard]] std::size_t index(Vertex at, Vertex destination) const {
    assert(at >= ports_ && destination < ports_);
    return std::size_t{at - ports_} * ports_ + destination;
  }

  std::uint32_t ports_ = 0;
  std::vector<GraphLink> egress_;
};

}  // namespace lockstep
