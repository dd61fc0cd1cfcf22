#include "models/collectives/across_nodes.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "models/collectives/in_node.hpp"

namespace lockstep {

namespace {

/// What differs between GPU generations once a collective leaves the node.
struct Generation {
  std::string_view architecture;
  double ring_share;  ///< of the in-node ring's bus bandwidth, for rings through nodes
  BytesPerSecond
      tree_two_nodes;  ///< bus bandwidth cap of trees over two nodes; 0: NCCL stays on rings
  BytesPerSecond tree_more_nodes;  ///< the same over three and more
};

/// Source: plateaus of public nccl-tests logs, 24 systems. Ring: 324 to 336 GB/s over H100 and H200
/// nodes against 365 inside; AMD 355 against 319. Trees (NCCL's NVLSTree): Hopper 471 to 488 GB/s
/// over two nodes and 364 to 374 over 4 to 16; Blackwell 820 over two NVL72 racks, 640 from
/// nvlsTreeMax of NCCL src/graph/tuning.cc.
constexpr std::array kGenerations{
    Generation{"volta", 0.9, BytesPerSecond{}, BytesPerSecond{}},
    Generation{"ampere", 0.9, BytesPerSecond{}, BytesPerSecond{}},
    Generation{"hopper", 0.9, gigabytes_per_second(480), gigabytes_per_second(366)},
    Generation{"blackwell", 0.9, gigabytes_per_second(820), gigabytes_per_second(640)},
    Generation{"cdna2", 1.1, BytesPerSecond{}, BytesPerSecond{}},
    Generation{"cdna3", 1.1, BytesPerSecond{}, BytesPerSecond{}},
};

const Generation& generation_of(const GpuSpec& gpu) {
  const auto* found = std::ranges::find(kGenerations, gpu.architecture, &Generation::architecture);
  return found != kGenerations.end() ? *found : kGenerations.front();
}

/// Of what rings reach on the same NICs, for trees: each NIC reduces upwards and broadcasts
/// downwards at once. Source: 156 of 175 GB/s (Snellius), 158 of 175 (Alps), 702 of 750 (Lambda
/// B200), where rings reach 0.93 to 0.98.
constexpr double kTreeShare = 0.95;

/// Rails that NCCL's channels of one communicator leave a node on when more than two nodes take
/// part. Source: all-reduce over 20 NVL72 racks, 72 NICs each, stops at 406 GB/s, the rate of eight
/// NICs.
constexpr int kRails = 8;

/// A call, unpacked.
struct Group {
  int n, g, k;
  BytesPerSecond nic;
  BytesPerSecond node;  ///< all NICs that the group's channels use in one node, at their efficiency
  Seconds start;        ///< shortest collective inside one node of the group
};

Seconds shortest_in_node(CollectiveOp op, int members, const GpuSpec& gpu) {
  std::vector<CollectiveCandidate> inside;
  add_in_node_candidates(op, std::max(members, 2), gpu.collectives, inside);
  return std::ranges::min_element(inside, {}, &CollectiveCandidate::latency)->latency;
}

Group group_of(const CollectiveCall& call, const GpuSpec& gpu, const TransportSpec& transport,
               BytesPerSecond nic) {
  const int g = call.ranks_per_node;
  const int k = (call.ranks + g - 1) / g;
  const double rails = k > 2 ? std::min(g, kRails) : g;
  return {.n = call.ranks,
          .g = g,
          .k = k,
          .nic = nic,
          .node = transport.efficiency * rails * nic,
          .start = shortest_in_node(call.op, g, gpu)};
}

/// Bus bandwidth of rings through all nodes: each enters and leaves a node on its own rail.
BytesPerSecond ring_plateau(const Group& group, const GpuSpec& gpu) {
  if (group.g == 1) return group.node;
  return std::min(group.node, generation_of(gpu).ring_share * ring_bus_bandwidth(gpu.collectives));
}

/// Payloads that the busiest node of NCCL's double binary tree sends: a leaf of both trees sends
/// one, an inner node of one and leaf of the other two.
double tree_loads(int nodes) { return nodes == 2 ? 1 : nodes == 3 ? 1.5 : 2; }

BytesPerSecond tree_plateau(const Group& group, const GpuSpec& gpu) {
  const Generation& generation = generation_of(gpu);
  const BytesPerSecond cap = group.k == 2 ? generation.tree_two_nodes : generation.tree_more_nodes;
  const double bus = bus_factor(CollectiveOp::all_reduce, group.n);
  return std::min(cap, kTreeShare * bus / tree_loads(group.k) * group.node);
}

// Shape of the all-reduce below its plateau: shares of the plateau's bandwidth, and latencies per
// doubling of the nodes (trees) and per node (rings). Source: fitted to 1,044 rows of public
// nccl-tests logs over 2 to 512 nodes, with a plateau per system.
constexpr double kTreeLlShare = 0.0019;
constexpr double kTreeLl128Share = 0.082;
constexpr double kTreeSimpleShare = 0.5;
constexpr Seconds kTreeLl128PerDoubling = microseconds(41);
constexpr Seconds kTreeSimplePerDoubling = microseconds(188);
constexpr Seconds kReduceBase = microseconds(35);
constexpr double kReduceBaseHops = 14;  ///< of the transport's hop latency
constexpr Seconds kReducePerNode = microseconds(44);

/// From member to member inside a node. Source: NVLink latency of Ring LL128, NCCL
/// src/graph/tuning.cc.
constexpr Seconds kRingPerMember = microseconds(1.9);

// The same of all-gather and reduce-scatter rings. Source: fitted to 200 rows over 2 to 256 nodes.
constexpr double kRingLlShare = 0.067;
constexpr double kRingSimpleHops = 3.05;  ///< of the transport's ring hop latency

void add_all_reduce(const Group& group, const GpuSpec& gpu, const TransportSpec& transport,
                    std::vector<CollectiveCandidate>& out) {
  const double n = group.n, g = group.g, k = group.k;
  const double bus = bus_factor(CollectiveOp::all_reduce, group.n);
  const BytesPerSecond ring = ring_plateau(group, gpu);
  const BytesPerSecond tree = tree_plateau(group, gpu);
  const BytesPerSecond plateau = std::max(ring, tree);
  const double doublings = std::log2(k);
  const Seconds small = group.start + 2 * doublings * transport.hop_latency;

  const CollectiveCandidate tree_shape{.algorithm = "tree",
                                       .protocol = "",
                                       .latency = {},
                                       .per_byte = {},
                                       .nvlink_coefficient = 2 * (g - 1) / g,
                                       .network_coefficient = 2 * (k - 1) / k / g};
  const auto add_tree = [&](std::string_view protocol, Seconds latency, double share) {
    CollectiveCandidate c = tree_shape;
    c.protocol = protocol;
    c.latency = latency;
    c.per_byte = per_byte_at(bus, share * plateau);
    out.push_back(c);
  };
  add_tree("ll", small, kTreeLlShare);
  add_tree("ll128", small + doublings * kTreeLl128PerDoubling, kTreeLl128Share);
  add_tree("simple", small + doublings * kTreeSimplePerDoubling, kTreeSimpleShare);

  const Seconds large = group.start + kReduceBase + kReduceBaseHops * transport.hop_latency;
  if (tree > ring) {
    out.push_back({.algorithm = group.g > 1 ? "nvls_tree" : "tree",
                   .protocol = "simple",
                   .latency = large + doublings * kReducePerNode,
                   .per_byte = per_byte_at(bus, tree),
                   .nvlink_coefficient = group.g > 1 ? (g + 1) / g : 0,
                   .network_coefficient = tree_shape.network_coefficient});
    return;
  }
  out.push_back({.algorithm = "ring",
                 .protocol = "simple",
                 .latency = large + (k - 1) * kReducePerNode + 2 * (n - k) * kRingPerMember,
                 .per_byte = per_byte_at(bus, ring),
                 .nvlink_coefficient = bus * (g - 1) / g,
                 .network_coefficient = bus / g});
}

/// All-gather, reduce-scatter, broadcast and reduce: rings only.
void add_rings(CollectiveOp op, const Group& group, const GpuSpec& gpu,
               const TransportSpec& transport, std::vector<CollectiveCandidate>& out) {
  const double g = group.g;
  const double bus = bus_factor(op, group.n);
  const BytesPerSecond plateau = ring_plateau(group, gpu);
  const Seconds hops = (group.k - 1.0) * transport.ring_hop_latency;
  const auto add = [&](std::string_view protocol, Seconds latency, double share) {
    out.push_back({.algorithm = "ring",
                   .protocol = protocol,
                   .latency = latency,
                   .per_byte = per_byte_at(bus, share * plateau),
                   .nvlink_coefficient = bus * (g - 1) / g,
                   .network_coefficient = bus / g});
  };
  add("ll", group.start + hops, kRingLlShare);
  add("simple", group.start + kRingSimpleHops * hops + (group.n - group.k) * kRingPerMember, 1);
}

/// Each member's off-node share leaves on its own rail; what is meant for another rail first
/// crosses NVLink to the member beside it (PXN).
void add_all_to_all(const Group& group, const GpuSpec& gpu, const TransportSpec& transport,
                    std::vector<CollectiveCandidate>& out) {
  const double n = group.n, g = group.g;
  const double off_node = (n - g) / n;
  const double nvlink = (g - 1) / n + off_node * (g - 1) / g;
  const BytesPerSecond network = transport.efficiency * group.nic;
  SecondsPerByte per_byte = per_byte_at(off_node, network);
  if (g > 1)
    per_byte = std::max(per_byte, per_byte_at(nvlink, ring_bus_bandwidth(gpu.collectives)));
  const Seconds peers = (group.k - 1.0) * transport.hop_latency;
  out.push_back({.algorithm = "pairwise",
                 .protocol = "simple",
                 .latency = group.start + peers,
                 .per_byte = per_byte,
                 .nvlink_coefficient = nvlink,
                 .network_coefficient = off_node});
}

/// Of an isolated pair's rate, where every member of a ring sends to the next and receives from the
/// one before at once. Source: assumed, 25 GB/s between neighbours of ten H100 nodes against 42.
constexpr double kNeighbourShare = 0.6;

void add_send_receive(const Group& group, const TransportSpec& transport,
                      std::vector<CollectiveCandidate>& out) {
  const double share = group.n > 2 ? kNeighbourShare : 1;
  const BytesPerSecond rate = share * transport.send_receive_efficiency * group.nic;
  out.push_back({.algorithm = "pairwise",
                 .protocol = "simple",
                 .latency = group.start + transport.hop_latency,
                 .per_byte = per_byte_at(1, rate),
                 .nvlink_coefficient = 0,
                 .network_coefficient = 1});
}

}  // namespace

void add_across_nodes_candidates(const CollectiveCall& call, const GpuSpec& gpu,
                                 const TransportSpec& transport, BytesPerSecond nic_bandwidth,
                                 std::vector<CollectiveCandidate>& out) {
  const Group group = group_of(call, gpu, transport, nic_bandwidth);
  switch (call.op) {
    case CollectiveOp::all_reduce:
      add_all_reduce(group, gpu, transport, out);
      break;
    case CollectiveOp::all_gather:
    case CollectiveOp::reduce_scatter:
    case CollectiveOp::broadcast:
    case CollectiveOp::reduce:
      add_rings(call.op, group, gpu, transport, out);
      break;
    case CollectiveOp::all_to_all:
      add_all_to_all(group, gpu, transport, out);
      break;
    case CollectiveOp::send_receive:
      add_send_receive(group, transport, out);
      break;
  }
}

}  // namespace lockstep
