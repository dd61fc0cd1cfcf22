/// An InfiniBand subnet: a graph of boxes and cables with the addresses that a subnet manager works
/// with. Made from a graph of ours (GUIDs as ibsim numbers them, LIDs as opensm assigns them) or
/// read from ibnetdiscover's output.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "topologies/graph/cluster_graph.hpp"

namespace lockstep {

/// Local identifier: what a packet names its destination by. 0: none.
using Lid = std::uint16_t;
/// Largest unicast LID. InfiniBand Architecture Specification 1.4, volume 1, section 4.1.3.
constexpr Lid kLastUnicastLid = 0xBFFF;
/// Ports of a box are numbered from 1 to this; 255 means "no path" in a forwarding table.
constexpr int kMostBoxPorts = 254;

enum class InfinibandKind : std::uint8_t {
  adapter,     ///< a port of a channel adapter (HCA), or of a switch's aggregation node
  switch_box,  ///< a switch chip with its management port 0
  router,
};

/// A vertex as InfiniBand sees it. Ports of one adapter are vertices of their own that share its
/// node GUID.
struct InfinibandVertex {
  InfinibandKind kind = InfinibandKind::adapter;
  std::uint64_t node_guid = 0;
  std::uint64_t port_guid = 0;  ///< of a switch: its node GUID
  Lid lid = 0;
  int box_ports = 1;        ///< of the whole box, cabled or not
  int port = 0;             ///< number of this port on its adapter; 0: a switch
  std::string description;  ///< what the box says of itself: "host1 mlx5_0"
};

struct InfinibandSubnet {
  ClusterGraph graph;  ///< every cable with the port numbers of both ends
  std::vector<InfinibandVertex> vertices;
  std::vector<std::string> hosts;  ///< name of each node
  Vertex manager = 0;              ///< where the subnet manager runs; it gets the first LID
};

/// The key by which opensm 3.3.23 orders GUIDs on x86: it compares them in network byte order, so
/// the last byte counts most.
[[nodiscard]] std::uint64_t opensm_order(std::uint64_t guid);

/// Gives every vertex without a LID the lowest free one, the manager first, then in opensm's order
/// of port GUIDs. Requires as many LIDs as there are.
void assign_lids(InfinibandSubnet& subnet);

/// The subnet of a graph: adapters of one port each with GUIDs 0x100000, 0x100002, ..., switches
/// 0x200000, 0x200001, ..., as ibsim numbers them, in the order of the vertices. Boxes whose cables
/// have no port numbers get the lowest free ones in the order of the cables. Throws InputError in
/// the name of `file` where InfiniBand has no such fabric: a NIC port with no cable or several, a
/// switch of more than kMostBoxPorts ports, a port number twice, more vertices than LIDs.
[[nodiscard]] InfinibandSubnet infiniband_subnet(const ClusterGraph& graph,
                                                 const std::string& file);

/// Follows cables of a subnet by box and port number.
class PortMap {
 public:
  explicit PortMap(const InfinibandSubnet& subnet);

  /// Numbers of ports run up to this, for any vertex.
  [[nodiscard]] int ports(Vertex vertex) const {
    return static_cast<int>(first_[vertex + 1] - first_[vertex]) - 1;
  }
  /// The link that leaves the vertex by that port; kNoLink: no cable is in it.
  [[nodiscard]] GraphLink link(Vertex vertex, int port) const {
    return links_[first_[vertex] + static_cast<std::uint32_t>(port)];
  }
  static constexpr GraphLink kNoLink = ~GraphLink{0};

 private:
  std::vector<std::uint32_t> first_;
  std::vector<GraphLink> links_;
};

/// The port number at the end of the link that it leaves from.
[[nodiscard]] int port_at_source(const ClusterGraph& graph, GraphLink link);

}  // namespace lockstep
