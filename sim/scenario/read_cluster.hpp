/// Reads "cluster", which every kind of scenario has: node, number of nodes, fabric.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/base/json_cursor.hpp"
#include "models/collectives/collectives.hpp"
#include "models/spec/hardware.hpp"
#include "sim/scenario/cluster_site.hpp"
#include "sim/scenario/declared_members.hpp"
#include "sim/scenario/node_pool.hpp"
#include "sim/scenario/preset_store.hpp"
#include "topologies/fabrics/fabric.hpp"
#include "topologies/fabrics/placement.hpp"

namespace lockstep {

/// The most nodes that are taken; it keeps every product within 64 bits.
constexpr int kMaxNodes = 1'000'000;
/// The most kinds of node that one may have.
constexpr int kMostClusterPools = 64;

/// What was said about a cluster; open where nothing was.
struct ClusterDraft {
  NodeSpec node;                         ///< of the first pool, where there are several
  std::optional<int> nodes;              ///< of all pools
  std::vector<NodePool> pools{};         ///< empty: all nodes are of one kind
  std::vector<NodePool> written{};       ///< the same as they are written, neighbours alike or not
  std::optional<ParallelAxis> across{};  ///< what is laid over the pools; open: as ranks come
  std::optional<FabricSpec> fabric;
  bool fabric_assumed = false;  ///< what was written are changes to default_fabric()
  ClusterSite site{};           ///< of the preset that was named
};

/// A cluster that somebody has built, or offers: presets of kind "clusters".
struct ClusterPreset : ClusterSite {
  std::string about;
  ClusterDraft cluster;  ///< all of it, with its nodes, fabric and site
};
// What such a preset may have, and a cluster in a scenario (spec_readers.hpp).
void declare_cluster_preset(const DeclaredMembers& member, const PresetStore& presets,
                            ClusterPreset& out);
void declare_cluster(const DeclaredMembers& member, const PresetStore& presets, ClusterDraft& out);

/// A cluster with everything filled in and checked.
struct Cluster {
  NodeSpec node;  ///< of the first pool, where there are several
  int nodes = 1;  ///< of all pools
  FabricSpec fabric;
  TransportSpec transport;
  std::vector<std::string> assumptions;  ///< "fabric: rail_optimised (not given)"
  std::vector<NodePool> pools{};         ///< one after the other; empty: all are `node`

  [[nodiscard]] int gpus() const { return nodes * node.gpus; }
  /// Before the first one of that pool.
  [[nodiscard]] int nodes_before(std::size_t pool) const;
  /// The kind of the node of that number.
  [[nodiscard]] const NodeSpec& node_at(int number) const;
};

/// "cluster": a preset's name, a preset with changes, or node, number and fabric. Throws
/// InputError, as the next one.
ClusterDraft read_cluster_draft(const JsonCursor& from, const PresetStore& presets);

/// Whether the nodes of a cluster may be of several kinds.
enum class NodeKinds : bool { one, several };

/// A cluster that has to stand by itself: the number of nodes is required, they are of one kind
/// unless `kinds` allows more, and the fabric has to join them. Of several kinds each entry of
/// "pools" is one, and all have the same transport unless the fabric says one. `from` is the member
/// "cluster" of the file's root.
Cluster read_cluster(const JsonCursor& from, const PresetStore& presets,
                     NodeKinds kinds = NodeKinds::one);

/// Whether ranks on these nodes reach each other over a network, and there is none: nodes that
/// share no NVLink domain, and the transport "none", which stands for what never leaves one.
bool lacks_network(const NodeSpec& node, int nodes, const TransportSpec& transport);
/// What to say of such a fabric: what is allowed.
std::string network_wanted(int nodes);

/// A node: a preset's name, a preset with changes, or all of it. Throws InputError.
void read_node_choice(const JsonCursor& from, const PresetStore& presets, NodeSpec& out);

/// The fabric's transport, else the node's.
TransportSpec transport_of(const NodeSpec& node, const FabricSpec& fabric,
                           const PresetStore& presets);
/// The fabric that a cluster of these nodes is given when nobody says.
FabricSpec default_fabric(const NodeSpec& node, const PresetStore& presets);

}  // namespace lockstep
