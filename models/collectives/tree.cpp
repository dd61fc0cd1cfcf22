#include <algorithm>
#include <cmath>

#include "models/collectives/in_node.hpp"
#include "models/collectives/laws.hpp"

namespace lockstep {

namespace {

/// Of the group's plateau over InfiniBand, for the double tree in Simple: a chain inside the node,
/// no reduction in the switch. Source: fitted with the constants of laws.hpp.
constexpr double kSimpleShare = 0.6;
/// It is a share of the line rate, and what a transport loses of that (GPUDirect that reads through
/// a CPU) a tree does not lose once more. Source: InfiniBand's efficiency; trees reach 31 of 50
/// GB/s over 256 nodes of ALCF Polaris and 65 of 100 over 64 to 512 of CSCS Alps, rings 36 and 92.
constexpr double kEfficiencyOfShare = 0.965;

/// From member to member of the chain inside a node, in Simple, either way. Source: NCCL
/// src/graph/tuning.cc, NVLink latency of Tree.
constexpr Seconds kSimplePerMember = microseconds(4);

/// Inside a node the tree is a chain down and up. Source: NCCL src/graph/tuning.cc, base and NVLink
/// latency of Tree in LL, LL128 and Simple; a tree has 0.92 of the rings' bus bandwidth and moves
/// half of it as payload, LL a quarter of that, LL128 7/9.
struct ChainProtocol {
  std::string_view name;
  Seconds base, per_member;
  double share;
};
constexpr std::array kChain{
    ChainProtocol{"ll", microseconds(6.8), microseconds(0.6), 0.92 / 3.8},
    ChainProtocol{"ll128", microseconds(14), microseconds(1.25), 0.92 * 7 / 9},
    ChainProtocol{"simple", microseconds(8.4), kSimplePerMember, 0.92},
};

void chain(const CollectiveContext& context, std::vector<CollectiveCandidate>& out) {
  const BytesPerSecond rings = ring_bus_bandwidth(context.gpu.collectives);
  for (const ChainProtocol& protocol : kChain) {
    out.push_back({.algorithm = "tree",
                   .protocol = protocol.name,
                   .latency = protocol.base + 2 * (context.n - 1.0) * protocol.per_member,
                   .per_byte = per_byte_at(2, protocol.share * rings),
                   .nvlink_coefficient = 2.0 * (context.n - 1) / context.n,
                   .network_coefficient = 0});
  }
}

}  // namespace

void tree_law(const CollectiveContext& context, std::vector<CollectiveCandidate>& out) {
  if (context.k == 1) return chain(context, out);
  const double g = context.g, k = context.k;
  const double bus = bus_factor(CollectiveOp::all_reduce, context.n);
  const double doublings = std::log2(k);
  const BytesPerSecond plateau = std::max(ring_plateau(context), nvls_tree_plateau(context));
  // Up the tree and down again: two hops per doubling of the nodes.
  const Seconds small = context.start + 2 * doublings * context.transport.hop_latency;
  const auto add = [&](std::string_view protocol, Seconds latency, double share) {
    out.push_back({.algorithm = "tree",
                   .protocol = protocol,
                   .latency = latency,
                   .per_byte = per_byte_at(bus, share * plateau),
                   .nvlink_coefficient = 2 * (g - 1) / g,
                   .network_coefficient = 2 * (k - 1) / k / g});
  };
  add("ll", small, kReduceLlShare);
  add("ll128", small + doublings * context.transport.ll128_latency, kReduceLl128Share);
  const Seconds longer_chain = 2.0 * std::max(0, context.most - kFittedMembers) * kSimplePerMember;
  add("simple", small + longer_chain + doublings * context.transport.simple_latency,
      std::min(1.0, kSimpleShare * (kEfficiencyOfShare / context.transport.efficiency)));
  // Large payloads: with several GPUs in a node this is NVLSTree, on four that NVLink joins without
  // a switch it is the tree.
  const MeasuredPlateaus measured = measured_plateaus(context);
  if (!reduces_in_switch(context) && measured.trees > measured.rings) {
    add("simple", large_tree_latency(context), nvls_tree_plateau(context) / plateau);
  }
}

void nvls_tree_law(const CollectiveContext& context, std::vector<CollectiveCandidate>& out) {
  const double g = context.g, k = context.k;
  const double bus = bus_factor(CollectiveOp::all_reduce, context.n);
  out.push_back({.algorithm = "nvls_tree",
                 .protocol = "simple",
                 .latency = large_tree_latency(context),
                 .per_byte = per_byte_at(bus, nvls_tree_plateau(context)),
                 .nvlink_coefficient = (g + 1) / g,
                 .network_coefficient = 2 * (k - 1) / k / g});
}

}  // namespace lockstep
