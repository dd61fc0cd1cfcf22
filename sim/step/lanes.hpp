/// The fabric links that a transfer between two places of a pipeline crosses: one lane for each
/// tensor-parallel rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "sim/fabric/collective_load.hpp"
#include "sim/fabric/connections.hpp"
#include "sim/step/plan.hpp"
#include "topologies/fabrics/fabric.hpp"
#include "topologies/fabrics/placement.hpp"

namespace lockstep {

/// A stage of a replica.
struct Place {
  int data = 0;
  int stage = 0;
};

/// Where routes are symmetric lane 0 stands for its group: the others load like links in the same
/// way, and what they add to links of lane 0 is counted. Under ECMP and on drawn fabrics, which
/// need not look the same from everywhere, every lane is routed; and so it is where groups straddle
/// nodes, of which some lanes leave the node and others do not, and where some lanes have experts
/// in demand.
class Lanes {
 public:
  /// Both outlive this. `nodes` as in Site.
  Lanes(const StepPlan& plan, const Fabric& fabric, std::vector<int> nodes = {});

  [[nodiscard]] const Fabric& fabric() const { return fabric_; }
  [[nodiscard]] const Placement& placement() const { return placement_; }
  [[nodiscard]] bool symmetric() const { return symmetric_; }
  /// Whether the job was given nodes of the fabric instead of its first ones.
  [[nodiscard]] bool on_chosen_nodes() const { return !nodes_.empty(); }
  /// Whether links of lane 0 stand for those of all lanes.
  [[nodiscard]] bool first_stands_for_all() const { return symmetric_ && alike_; }
  /// Whether what replicas put on links says which of them are alike, so that folding is exact: not
  /// where a whole tree hashes, since then no two are.
  [[nodiscard]] bool comparable() const { return symmetric_ || fabric_.is_drawn(); }
  [[nodiscard]] int rank(Place at, int lane = 0) const {
    return placement_.rank({.tensor = lane, .data = at.data, .pipeline = at.stage});
  }

  /// Node of the fabric that holds a rank.
  [[nodiscard]] int node_of(int rank) const {
    const int node = placement_.node_of(rank);
    return nodes_.empty() ? node : nodes_[static_cast<std::size_t>(node)];
  }
  /// Where a rank reaches the fabric.
  [[nodiscard]] FabricMember member(int rank) const {
    return fabric_member(placement_, nodes_, rank);
  }
  /// Switches between two ranks.
  [[nodiscard]] int switches_between(int from, int to) const;
  /// Of the lanes between two places: whether any goes over the fabric, and the most switches that
  /// one crosses.
  [[nodiscard]] bool over_fabric(Place from, Place to) const;
  [[nodiscard]] int switches_between(Place from, Place to) const;

  /// Adds to `uses` what all lanes put on links for each byte that one lane sends, times `bytes`,
  /// over so many connections of each lane; when `only_known`, only on links that are among `uses`
  /// already.
  void add(Place from, Place to, int connections, bool only_known, double bytes,
           std::vector<RouteHop>& uses);
  /// Adds the ring between the NVLink domains of a group, as far as `replica` sends.
  void add_ring(int replica, int stage, const DataGroup& group, std::vector<RouteHop>& uses);

 private:
  /// Where a lane of a place reaches the fabric.
  struct LanePort {
    NodePort at;
    int leaf = 0;  ///< the switch there; 0 on drawn fabrics
  };
  [[nodiscard]] LanePort lane_port(int node, int nic) const;
  /// How the lanes of a place lie on the fabric.
  struct LanesOfPlace {
    std::uint32_t first = kUnknownPorts;  ///< index into lane_ports_; the other lanes follow it
    bool on_one_leaf = true;
    std::uint64_t beside_first = 0;  ///< lanes at the first one's port, as bits; 0 above kMostBits
  };
  static constexpr std::uint32_t kUnknownPorts = std::numeric_limits<std::uint32_t>::max();
  static constexpr int kMostBits = 64;
  [[nodiscard]] LanesOfPlace lanes_of(Place at);
  /// Where messages between two ports enter the fabric.
  [[nodiscard]] LanePort entry(const LanePort& from, const LanePort& to) const;

  /// The first lane, which puts `uses` on links.
  void note_first(const LanePort& from, const LanePort& to, const std::vector<RouteHop>& uses);
  /// Whether all lanes between two places are seen without a route, once the first has one.
  [[nodiscard]] bool all_follow(const LanesOfPlace& from, const LanesOfPlace& to) const;
  /// Adds what they put on links, `beside` of them at the first one's port.
  void add_all(int beside, std::vector<RouteHop>& uses) const;
  /// Adds what a lane puts on links that the first uses too, if it is seen without a route: between
  /// the same leaves, over the same NICs or over others. Requires that `uses` began with the first.
  [[nodiscard]] bool follows_first(const LanePort& from, const LanePort& to,
                                   std::vector<RouteHop>& uses) const;

  const StepPlan& plan_;
  Placement placement_;
  const Fabric& fabric_;
  std::vector<int> nodes_;
  bool symmetric_;
  /// Lanes are: each group of them fills nodes, or nodes are filled with groups, and no lane has
  /// experts that are sent more tokens than those of others.
  bool alike_;
  std::vector<RouteHop> hops_;
  /// Of all lanes of the places that were asked for, which many messages share.
  std::vector<LanePort> lane_ports_;
  std::vector<LanesOfPlace> of_place_;
  LanePort first_entry_, first_to_;  ///< of the first lane
  /// What it puts on one link after the other.
  struct FirstHop {
    double share;
    bool joins_nic;  ///< the link does
  };
  std::vector<FirstHop> first_hops_;
};

}  // namespace lockstep
