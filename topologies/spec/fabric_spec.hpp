/// What can be said about a fabric: its kind and sizes, its routing, what of it is broken.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/units.hpp"
#include "models/spec/hardware.hpp"

namespace lockstep {

enum class FabricKind : std::uint8_t {
  ideal,           ///< one switch of unlimited capacity: only NICs limit
  fat_tree,        ///< every NIC of a node on the node's own leaf switch
  rail_optimised,  ///< NIC i of every node of a unit of `leaf_ports_down` nodes on the unit's leaf
                   ///< i
  rail_only,       ///< a tree for NIC i of every node, and nothing between these trees
  dragonfly,       ///< groups of switches that all meet, and cables between every two groups
  dragonfly_plus,  ///< groups of leaves and spines, and cables between the spines of any two groups
  torus,           ///< a ring of switches along each of two or three dimensions
  file,            ///< drawn by the user or an import
};
enum class Routing : std::uint8_t {
  spray,     ///< per-packet: every switch splits a message evenly over its shortest ways
  ecmp,      ///< each queue pair is hashed onto one path
  adaptive,  ///< like spray, in proportion to capacity; dragonflies also use longer ways
  minhop,    ///< by forwarding tables, as an InfiniBand subnet manager computes them
  updn,      ///< the same without turning up again after a way down
  ftree,     ///< the same, balanced for fat trees
  tables,    ///< by forwarding tables that the user gives
};
/// What the switches of an ECMP fabric mix into their hashes.
enum class HashSeed : std::uint8_t {
  per_switch,  ///< a seed each: layers choose independently
  shared,      ///< all the same: a later layer repeats the choice of an earlier one (polarisation)
};

/// The largest FabricSpec::hash_draw.
constexpr int kMostHashDraw = 1'000'000'000;

/// One row per Routing, in its order: for `list fabrics`, the reader and its messages.
struct RoutingInfo {
  Routing routing;
  std::string_view name;
  std::string_view summary;
  std::string_view source;
  bool is_static;  ///< by the destination alone, with forwarding tables
};
std::span<const RoutingInfo> routings();
std::span<const std::string_view> hash_seed_names();

/// Something broken, slow or faster than the rest. A cable counts both ways.
struct FabricFault {
  enum class Part : std::uint8_t {
    cable,        ///< between `from` and `to`
    box,          ///< all cables of the switch `from`
    nic,          ///< all cables of the NIC port `from`
    some_cables,  ///< `count` cables between switches, drawn by `seed`
  };
  Part part = Part::cable;
  std::string from, to;  ///< names of vertices, as link_name() says them: "leaf 0", "spine 1"
  int index = -1;        ///< which of parallel cables, from 0; -1: all of them
  int count = 0;
  std::uint64_t seed = 0;
  double rate = 0;           ///< of its capacity that is left; 0: down
  BytesPerSecond bandwidth;  ///< if above 0: its capacity instead
};

class ClusterGraph;

struct FabricSpec {
  std::string name;
  std::string about;
  FabricKind kind = FabricKind::rail_optimised;
  Routing routing = Routing::spray;
  int levels = 2;                     ///< switch layers: 2 leaf/spine, 3 leaf/spine/core
  int leaf_ports_down = 32;           ///< NIC ports of a leaf switch
  int pod_leaves = 0;                 ///< leaves under one set of spines (3 levels); 0: as many as
                                      ///< leaf_ports_down, whole units when rail optimised
  int switch_ports = 0;               ///< ports of a spine or core switch; 0: as many as needed
  double leaf_oversubscription = 1;   ///< at a full leaf: capacity of NICs over uplinks
  double spine_oversubscription = 1;  ///< of a full pod's downlinks over its uplinks (3 levels)
  BytesPerSecond link_bandwidth;      ///< of a switch-switch link; 0: the NIC's
  BytesPerSecond upper_bandwidth;     ///< of a link between spine and core, or between dragonfly
                                      ///< groups; 0: link_bandwidth
  Seconds switch_latency;             ///< per switch crossed
  std::string sharp;                  ///< what its switches can sum: a name of sharp_generations();
                                      ///< empty: nothing
  std::string transport;              ///< preset name; empty: the node's
  std::optional<TransportSpec> own_transport{};  ///< refined from that preset, in place of it

  int planes = 1;  ///< copies of the fabric side by side; each NIC port splits its bandwidth

  // Dragonflies; `leaf_ports_down` is what a switch (a leaf) has in NIC ports.
  int groups = 0;          ///< 0: as many as the nodes need
  int group_switches = 0;  ///< switches of a group; dragonfly+: leaves of a group
  int group_spines = 0;    ///< dragonfly+
  int local_cables = 1;    ///< between any two switches of a group; dragonfly+: leaf and spine
  int global_cables = 1;   ///< between any two groups
  std::vector<int> torus;  ///< switches along each dimension; empty: a near cube for the nodes

  // Routing
  HashSeed hash_seed = HashSeed::per_switch;
  int hash_draw = 1;    ///< ECMP: which draw of all hashes; every command means the same by it
  int queue_pairs = 1;  ///< of a connection, over which ECMP splits each message evenly
  bool pxn = false;     ///< a message changes to its destination's rail over NVLink first
  std::optional<double> nonminimal_share;  ///< of adaptive traffic between dragonfly groups that
                                           ///< goes through a third one; absent: kUgalShare

  std::string tables;  ///< routing `tables`: where opensm's dump was read from
  std::shared_ptr<const std::string> tables_text;

  std::vector<FabricFault> faults;
  std::string file;                           ///< kind `file`: where the graph was read from
  std::shared_ptr<const ClusterGraph> graph;  ///< kind `file`
};

/// Part of adaptive traffic between two dragonfly groups that goes through a third one. UGAL
/// decides packet by packet, from its queues (Kim, Dally, Scott and Abts 2008, ISCA, section 4):
/// none under benign traffic, nearly all under the worst. A flow model has no queues yet when it
/// routes; assumed: half way.
constexpr double kUgalShare = 0.5;

/// What is wrong with a fabric: the FabricSpec member, what it holds, and what would do.
struct FabricProblem {
  std::string field;
  std::string found;
  std::string allowed;
  std::string nearest = {};  ///< the name that was probably meant; empty: none is near
};

/// A directed link of the fabric, dense number from 0.
using FabricLink = std::uint32_t;

/// Crossing one link: how much of each byte of the message crosses it. 1 on whole trees under
/// spray, where parallel links are one bundle, and on single paths.
struct RouteHop {
  FabricLink link;
  double share;
};

}  // namespace lockstep
