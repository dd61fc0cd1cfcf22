// Algorithms whose sums are made by switches: NVLS inside a node, and across nodes with SHARP.

#include <algorithm>

#include "models/collectives/in_node.hpp"
#include "models/collectives/laws.hpp"

namespace lockstep {

namespace {

/// Across nodes a byte of payload goes up and comes down once in every node, however many there
/// are: one hop of the transport each way.
Seconds up_and_down(const CollectiveContext& context) { return 2 * context.transport.hop_latency; }

CollectiveCandidate in_network(const CollectiveContext& context, std::string_view algorithm,
                               Seconds latency, BytesPerSecond inside, double nvlink) {
  return {.algorithm = algorithm,
          .protocol = "simple",
          .latency = latency,
          .per_byte = per_byte_at(1, std::min(context.node, inside)),
          .nvlink_coefficient = nvlink,
          .network_coefficient = 1.0 / context.g};
}

// CollNet: latency beside the transport's, by NVLink steps and for the network. Source: NCCL
// src/graph/tuning.cc.
constexpr Seconds kDirectNetwork = microseconds(31);
constexpr Seconds kDirectStep = microseconds(3.7);
constexpr Seconds kDirectPerMember = microseconds(0.4);
constexpr Seconds kChainNetwork = microseconds(30);
constexpr Seconds kChainStep = microseconds(2.8);

/// Payload is half of the rings' bus bandwidth, Direct on Hopper and later 0.85 of that. Source:
/// NCCL src/graph/tuning.cc.
constexpr double kPayloadOfBus = 0.5;
constexpr double kDirectOnHopper = 0.85;

}  // namespace

/// Each member sends its buffer once to the switch, which sums and multicasts. Across nodes the
/// NVLink switch's sums go on to the network's switches.
void nvls_law(const CollectiveContext& context, std::vector<CollectiveCandidate>& out) {
  if (context.k == 1) return add_regimes(context, "nvls", out);
  const double g = context.g;
  std::vector<CollectiveCandidate> inside, fullest;
  add_in_node_candidates(CollectiveOp::all_reduce, context.g, context.gpu.collectives, inside);
  add_in_node_candidates(CollectiveOp::all_reduce, context.most, context.gpu.collectives, fullest);
  for (const CollectiveCandidate& one : inside) {
    if (one.algorithm != "nvls") continue;
    const auto longest = std::ranges::find(fullest, "nvls", &CollectiveCandidate::algorithm);
    out.push_back(in_network(context, "nvls", longest->latency + up_and_down(context),
                             BytesPerSecond{1 / one.per_byte.base_units()}, (g + 1) / g));
  }
}

/// Each member gathers a share of the node's buffers directly from all others and sends the sum up
/// its own rail.
void collnet_direct_law(const CollectiveContext& context, std::vector<CollectiveCandidate>& out) {
  const double g = context.g;
  const bool hopper = nvls_bus_bandwidth(context.gpu.collectives) > BytesPerSecond{};
  const BytesPerSecond inside =
      (hopper ? kDirectOnHopper : 1) * kPayloadOfBus * ring_bus_bandwidth(context.gpu.collectives);
  const double others = context.most - 1;
  const Seconds steps = 2 * (std::min(1.0, others) * kDirectStep + others * kDirectPerMember);
  out.push_back(in_network(context, "collnet_direct", steps + kDirectNetwork + up_and_down(context),
                           g > 1 ? inside : context.node, 2 * (g - 1) / g));
}

/// The members of a node form a chain whose end sends the sum up.
void collnet_chain_law(const CollectiveContext& context, std::vector<CollectiveCandidate>& out) {
  const double g = context.g;
  const BytesPerSecond inside = kPayloadOfBus * ring_bus_bandwidth(context.gpu.collectives);
  out.push_back(
      in_network(context, "collnet_chain",
                 2.0 * (context.most - 1) * kChainStep + kChainNetwork + up_and_down(context),
                 g > 1 ? inside : context.node, 2 * (g - 1) / g));
}

}  // namespace lockstep
