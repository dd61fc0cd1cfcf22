/// The compute fabric between nodes: NIC ports, switches and links, and the route of a message.
///
/// Whole trees have arithmetic link and switch numbers, so that a route costs no table and no
/// search; `cluster_graph.hpp` writes the same fabric out as an explicit graph. Every other fabric
/// (rails that never meet, dragonflies, tori, planes, imports, trees with faults or static routes)
/// is drawn: a builder makes its graph, routes/ finds its routes, and its links are the graph's.
///
/// In a tree, a leaf switch has `leaf_ports_down` NIC ports and as many uplinks as its
/// oversubscription leaves it; uplink u leads to spine u / (uplinks per spine). With three levels,
/// a pod is a set of leaves under its own spines, and spine s of every pod meets the others in core
/// group s. NVLink is no part of the fabric.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/units.hpp"
#include "topologies/spec/fabric_spec.hpp"

namespace lockstep {

struct FabricPlan;     // fabrics/drawing.hpp
struct FabricDrawing;  // fabrics/drawing.hpp

/// One row per FabricKind, in its order: for `list fabrics`, the reader and its messages.
struct FabricKindInfo {
  FabricKind kind;
  std::string_view name;  ///< as scenarios say it
  std::string_view summary;
  std::string_view source;
  /// What keeps a fabric of the kind from joining the plan's nodes, before it is drawn.
  std::optional<FabricProblem> (*check)(const FabricPlan& plan);
  FabricDrawing (*draw)(const FabricPlan& plan);
  bool always_drawn;  ///< false: its routes are arithmetic while nothing is broken
};
std::span<const FabricKindInfo> fabric_kinds();

/// Whether the fabric has a graph and routes over it, instead of arithmetic ones: all but whole
/// trees with a single plane and no forwarding tables.
bool is_drawn(const FabricSpec& spec);

/// The first thing that keeps this fabric from joining `nodes` nodes, in words; nothing: it is
/// sound. Accepts any input. A drawn fabric is drawn for it, so it costs as much as building it.
/// `nics_per_node` counts ports as `nic_ports()` of placement.hpp does.
std::optional<FabricProblem> check(const FabricSpec& spec, int nodes, int nics_per_node,
                                   BytesPerSecond nic_bandwidth);

/// How many switches and links a fabric has, as far as its nodes need them: a fabric with one leaf
/// has no spines, one with a single pod no cores. The last leaf, unit and pod may be partly filled;
/// their switches have all their uplinks.
struct FabricCounts {
  int unit_nodes = 0;  ///< nodes of a leaf (fat tree) or of a unit of leaves (rail optimised)
  int leaves = 1;
  int pods = 1;
  int pod_leaves = 1;                  ///< leaves of a full pod
  int leaf_uplinks = 0;                ///< of each leaf
  int spines = 0;                      ///< of each pod; divides leaf_uplinks
  int spine_uplinks = 0;               ///< of each spine
  int cores = 0;                       ///< that each spine reaches; divides spine_uplinks
  BytesPerSecond leaf_link_capacity;   ///< of each uplink and downlink of a leaf
  BytesPerSecond spine_link_capacity;  ///< of each uplink and downlink of a spine
};

/// A NIC port of a whole tree, with what its routes need: looked up once, they cost no division.
struct FabricPort {
  FabricLink number;  ///< of its link up; the number of its link down follows
  int leaf;
  int pod;
};

class GraphRoutes;

class Fabric {
 public:
  /// Requires that check() finds nothing. A whole tree costs the same for any number of nodes; a
  /// drawn fabric costs time and memory for its cables and for its switches squared.
  Fabric(const FabricSpec& spec, int nodes, int nics_per_node, BytesPerSecond nic_bandwidth);
  /// A graph of one's own, with the routing of `spec`; its kind counts as `file`. All NICs of nodes
  /// with fewer than others have must be left alone. Requires that check() finds nothing.
  Fabric(const FabricSpec& spec, std::shared_ptr<const ClusterGraph> graph);

  [[nodiscard]] int nodes() const { return nodes_; }
  [[nodiscard]] int nics_per_node() const { return nics_; }
  [[nodiscard]] BytesPerSecond nic_bandwidth() const { return nic_bandwidth_; }
  [[nodiscard]] std::uint32_t link_count() const { return link_count_; }
  /// Bytes per second of a link (of the whole bundle, where parallel links are sprayed over).
  [[nodiscard]] BytesPerSecond capacity(FabricLink link) const;
  /// "node 3 nic 1 up", "leaf 2 to spine 0", ... for reports and traces.
  [[nodiscard]] std::string link_name(FabricLink link) const;
  /// Whether the link joins a NIC and a switch; else it joins two switches.
  [[nodiscard]] bool joins_nic(FabricLink link) const;
  /// NIC links of a port: up (into the fabric) and down (out of it); where it has one for each of
  /// several planes, the first.
  [[nodiscard]] FabricLink nic_up(int node, int nic) const;
  [[nodiscard]] FabricLink nic_down(int node, int nic) const;
  /// Appends all links of a port, with their shares of what it sends or receives.
  void nic_ups(int node, int nic, std::vector<RouteHop>& out) const;
  void nic_downs(int node, int nic, std::vector<RouteHop>& out) const;

  /// Appends what a message from one NIC to another crosses, NIC links included, each link once; a
  /// single path in its order. `queue_pair` feeds the ECMP hash. Same node and NIC: no hops; with
  /// PXN, same node: none either, since it stays on NVLink.
  void route(int from_node, int from_nic, int to_node, int to_nic, std::uint64_t queue_pair,
             std::vector<RouteHop>& out) const;
  /// Switches on that route; where there are longer ways beside it, on a shortest one.
  [[nodiscard]] int switches_crossed(int from_node, int from_nic, int to_node, int to_nic) const;
  [[nodiscard]] const FabricSpec& spec() const { return spec_; }

  /// Whether links and routes are those of graph().
  [[nodiscard]] bool is_drawn() const { return routes_ != nullptr; }
  /// Requires is_drawn(); graph_of(fabric) draws the others.
  [[nodiscard]] std::shared_ptr<const ClusterGraph> graph() const;

  // The rest is of whole trees alone: requires !is_drawn().

  [[nodiscard]] const FabricCounts& counts() const { return counts_; }
  /// The leaf switch of a NIC, and the pod (set of leaves under common spines) of a leaf.
  [[nodiscard]] int leaf_of(int node, int nic) const;
  [[nodiscard]] int pod_of(int leaf) const {
    return counts_.pods == 1 ? 0 : leaf / counts_.pod_leaves;
  }

  [[nodiscard]] FabricPort port(int node, int nic) const;
  /// Adds to load[l] the shares of messages from[i] to to[i] that cross link l, as route() has
  /// them: for many messages at a time. Appends the links that had no load to `loaded`. Requires as
  /// many of both, different ports in each pair, and a load for each link.
  void add_loads(std::span<const FabricPort> from, std::span<const FabricPort> to,
                 std::uint64_t queue_pair, std::span<double> load,
                 std::vector<FabricLink>& loaded) const;

  /// Adds so many bytes to each link that a message from one port to another crosses. Requires what
  /// add_loads() requires, and switches that spread each message evenly.
  void add_load(const FabricPort& from, const FabricPort& to, double bytes, std::span<double> load,
                std::vector<FabricLink>& loaded) const;

  /// The links between switches, for cluster_graph.hpp; under spray every `uplink` of one leaf (or
  /// of one pod's spines) is the same bundle. `spine` counts within its pod.
  [[nodiscard]] FabricLink leaf_up(int leaf, int uplink) const;
  [[nodiscard]] FabricLink leaf_down(int leaf, int uplink) const;
  [[nodiscard]] FabricLink spine_up(int pod, int spine, int uplink) const;
  [[nodiscard]] FabricLink spine_down(int pod, int spine, int uplink) const;

 private:
  void number_tree();
  template <class Use>
  void for_each_hop(const FabricPort& from, const FabricPort& to, std::uint64_t queue_pair,
                    Use use) const;
  template <class Use>
  void hashed_hops(const FabricPort& from, const FabricPort& to, std::uint64_t queue_pair,
                   Use use) const;

  FabricSpec spec_;
  int nodes_ = 0;
  int nics_ = 0;
  BytesPerSecond nic_bandwidth_;
  FabricCounts counts_;
  bool spray_ = true;
  std::uint64_t hash_salt_ = 0;
  FabricLink leaf_links_ = 0;   ///< one way: all leaves
  FabricLink spine_links_ = 0;  ///< one way: all pods
  FabricLink nic_ports_ = 0;
  FabricLink link_count_ = 0;
  std::shared_ptr<const GraphRoutes> routes_;  ///< of a drawn fabric
};

}  // namespace lockstep
