/// Where a collective's bytes go: the members of a group, channel by channel, as rings over rails,
/// double binary trees over nodes, or pairs. Knows no fabric: whoever has one turns each network
/// edge into a route between the two members' NICs.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/collectives/collectives.hpp"

namespace lockstep {

/// Where a member of the group sits. `gpu` counts inside its node; its NIC is that of the GPU.
struct GroupMember {
  int node = 0;  ///< any number that tells nodes (NVLink domains) apart
  int gpu = 0;
};

/// The members of one node, in the order of their GPUs: member r of the node is its rail r.
struct GroupNode {
  int node = 0;
  std::vector<int> members;  ///< numbers of members
};

/// The nodes of a group in the order in which members first name them, as NCCL orders its rings by
/// the lowest rank. Requires members on different GPUs, at least one.
std::vector<GroupNode> group_nodes(std::span<const GroupMember> members);

/// One ring of NCCL. It enters every node once and leaves it once, on the NIC of its rail
/// (NCCL_CROSS_NIC=0), and passes through all of the node's members in between over NVLink.
struct RingChannel {
  int rail = 0;
  std::vector<int> order;  ///< members; the last sends to the first
};
/// Channel c runs on rail c modulo the members of the smallest node, so that every rail carries the
/// same number of rings where `channels` is a multiple of that. Requires channels >= 1.
std::vector<RingChannel> ring_channels(std::span<const GroupMember> members, int channels);

/// A double binary tree over `nodes` nodes: parents by node, -1 at the root. Node 0 is the root of
/// the first. Where `nodes` is even, every node is a leaf of one tree and an inner node of the
/// other; where it is odd, node 0 is inner in both. Depth is at most log2(nodes) + 1 edges.
///
/// Source: NCCL src/graph/trees.cc (ncclGetDtree); Sanders, Speck and Traeff 2009, Parallel
/// Computing 35, 581-594. Requires nodes >= 1.
struct DoubleBinaryTree {
  std::vector<int> first;
  std::vector<int> second;
};
DoubleBinaryTree double_binary_tree(int nodes);

/// A tree over the nodes of a group, on the NICs of one rail. Channels alternate between the two
/// trees, each pair of channels on its own rail; inside a node the members form a chain (or the
/// switch reduces: NVLSTree).
struct TreeChannel {
  int rail = 0;
  std::vector<int> parent;  ///< by position in group_nodes(); -1: root
};
std::vector<TreeChannel> tree_channels(std::span<const GroupMember> members, int channels);

/// Bytes from one member's NIC to another's for each byte of payload.
struct NetworkEdge {
  int from = 0;  ///< member whose NIC sends
  int to = 0;    ///< member whose NIC receives; kSwitch: summed on the way, by the switches
  double bytes = 0;
  int channels = 1;  ///< that share the bytes evenly, each over a connection of its own
  friend bool operator==(const NetworkEdge&, const NetworkEdge&) = default;
};
constexpr int kSwitch = -1;

/// Patterns with an edge between so many pairs that they are not written out.
enum class PairPattern : std::uint8_t {
  none,
  all_pairs,  ///< from every member to every member of another node
  rail_pairs  ///< from every member to the member on the same rail of every other node
};

struct CollectiveShape {
  double nvlink_coefficient = 0;   ///< as in CollectiveCost
  std::vector<NetworkEdge> edges;  ///< one per pair of members; pairs are not in it
  PairPattern pairs = PairPattern::none;
  double bytes_per_pair = 0;  ///< per byte of payload
  int channels_per_pair = 1;  ///< as NetworkEdge::channels
  /// Of pairs, by member: what it sends and what it receives over the mean; empty: all the same.
  std::vector<double> sends{}, receives{};
};

/// What the shape of an algorithm is asked for.
struct ShapeCall {
  CollectiveOp op{};
  std::span<const GroupMember> members{};  ///< at least two
  int channels = 1;                        ///< at least 1
  int peer_channels = 1;                   ///< of each pair of members that send to their peers
};

/// What the algorithm (a name of collective_algorithms(), whose row has the function; others are
/// taken for "ring") puts on the network, and on NVLink out of each member, when the group runs
/// `channels` channels. Trees need an even number of channels to be balanced, rings a multiple of
/// the rails. Edges of several channels between the same two members are added up. Where members
/// send to their peers (all-to-all, send and receive) each pair has `peer_channels` of its own. The
/// first member is the root of a broadcast or a reduction. Requires a group of at least two
/// members, and an algorithm of this `op`.
CollectiveShape collective_shape(CollectiveOp op, std::string_view algorithm,
                                 std::span<const GroupMember> members, int channels,
                                 int peer_channels = 1);

/// The shape of an all-to-all in which members are sent unequal parts.
CollectiveShape skewed(CollectiveShape shape, const ExchangeSkew& skew,
                       std::span<const GroupMember> members);

/// The pairs of a shape written out: n (n - g) edges or fewer.
std::vector<NetworkEdge> pair_edges(const CollectiveShape& shape,
                                    std::span<const GroupMember> members);

/// What a member's ports carry, for each byte that a member sends in all on average.
struct PortBytes {
  double network_out = 0, network_in = 0, nvlink_out = 0, nvlink_in = 0;
};
/// Of an all-to-all with such a skew, by member. `gathered`: what goes to another node first
/// crosses NVLink to the member on its receiver's rail ("two_level").
std::vector<PortBytes> all_to_all_ports(const ExchangeSkew& skew, bool gathered,
                                        std::span<const GroupMember> members);

}  // namespace lockstep
