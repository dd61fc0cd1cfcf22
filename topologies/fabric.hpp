/// The compute fabric between nodes: NIC ports, switches and links, and the route of a message.
/// Link and switch numbers are arithmetic, so that a route costs no table and no search;
/// `cluster_graph.hpp` writes the same fabric out as an explicit graph.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "models/units.hpp"

namespace lockstep {

enum class FabricKind : std::uint8_t {
  ideal,           ///< one switch of unlimited capacity: only NICs limit
  fat_tree,        ///< every NIC of a node on the node's own leaf switch
  rail_optimised,  ///< NIC i of every node of a pod on the pod's leaf i
};
enum class Routing : std::uint8_t {
  spray,  ///< adaptive or per-packet: a message uses all parallel links evenly
  ecmp,   ///< each queue pair is hashed onto one path
};

struct FabricSpec {
  std::string name;
  std::string about;
  FabricKind kind = FabricKind::rail_optimised;
  Routing routing = Routing::spray;
  int levels = 2;                   ///< switch layers: 2 leaf/spine, 3 leaf/spine/core
  int leaf_ports_down = 32;         ///< NIC ports of a leaf switch
  int pod_leaves = 0;               ///< leaves under one set of spines (3 levels); 0: all
  double leaf_oversubscription = 1; ///< down capacity over up capacity at the leaf
  double spine_oversubscription = 1;///< the same at the spine (3 levels)
  BytesPerSecond link_bandwidth;    ///< of a switch-switch link; 0: the NIC's
  Seconds switch_latency;           ///< per switch crossed
  std::string transport;            ///< preset name; empty: the node's
};

/// A directed link of the fabric, dense number from 0.
using FabricLink = std::uint32_t;

/// Crossing one link: how much of each byte of the message crosses it (1, or 1/k when sprayed over k).
struct RouteHop {
  FabricLink link;
  double share;
};

class Fabric {
 public:
  /// Throws InputError-free std::invalid_argument never: the scenario reader has checked the spec.
  Fabric(const FabricSpec& spec, int nodes, int nics_per_node, BytesPerSecond nic_bandwidth);

  [[nodiscard]] int nodes() const { return nodes_; }
  [[nodiscard]] int nics_per_node() const { return nics_; }
  [[nodiscard]] std::uint32_t link_count() const;
  /// Bytes per second of a link (of the whole bundle, where parallel links are sprayed over).
  [[nodiscard]] BytesPerSecond capacity(FabricLink link) const;
  /// "node 3 nic 1 up", "leaf 2 to spine 0", ... for reports and traces.
  [[nodiscard]] std::string link_name(FabricLink link) const;
  /// NIC links of a port: up (into the fabric) and down (out of it).
  [[nodiscard]] FabricLink nic_up(int node, int nic) const;
  [[nodiscard]] FabricLink nic_down(int node, int nic) const;

  /// Appends the hops of a message from one NIC to another, NIC links included. `queue_pair` feeds
  /// the ECMP hash. Same node and NIC: no hops.
  void route(int from_node, int from_nic, int to_node, int to_nic, std::uint64_t queue_pair,
             std::vector<RouteHop>& out) const;
  /// Switches on that route.
  [[nodiscard]] int switches_crossed(int from_node, int from_nic, int to_node, int to_nic) const;
  /// The leaf switch of a NIC, and the pod (set of leaves under common spines) of a leaf.
  [[nodiscard]] int leaf_of(int node, int nic) const;
  [[nodiscard]] int pod_of(int leaf) const;
  [[nodiscard]] const FabricSpec& spec() const { return spec_; }

 private:
  FabricSpec spec_;
  int nodes_ = 0;
  int nics_ = 0;
  BytesPerSecond nic_bandwidth_;
  // the builder adds its derived counts here
};

}  // namespace lockstep
