#include <algorithm>

#include "models/collectives/in_node.hpp"
#include "models/collectives/laws.hpp"

namespace lockstep {

namespace {

/// Of an isolated pair's rate, where every member of a ring sends to the next and receives from the
/// one before at once. Source: assumed, 25 GB/s between neighbours of ten H100 nodes against 42.
constexpr double kNeighbourShare = 0.6;

constexpr std::string_view kTwoLevel = "two_level";

/// To post one more message. Source: network post overhead, NCCL src/graph/tuning.cc.
constexpr Seconds kPerMessage = microseconds(1);

void send_receive(const CollectiveContext& context, std::vector<CollectiveCandidate>& out) {
  const double share = context.n > 2 ? kNeighbourShare : 1;
  const BytesPerSecond rate = share * context.transport.send_receive_efficiency * context.nic;
  out.push_back({.algorithm = "pairwise",
                 .protocol = "simple",
                 .latency = context.start + context.transport.hop_latency,
                 .per_byte = per_byte_at(1, rate),
                 .nvlink_coefficient = 0,
                 .network_coefficient = 1});
}

/// An all-to-all whose NVLink part carries `nvlink` bytes, with `messages` sent by each member.
CollectiveCandidate all_to_all(const CollectiveContext& context, std::string_view algorithm,
                               double nvlink, double messages) {
  const double n = context.n, g = context.g, k = context.k;
  const double off_node = (n - g) / n;
  const SkewFactors skew = skew_factors(context.skew, n, g, algorithm == kTwoLevel);
  SecondsPerByte per_byte = per_byte_at(
      skew.network * off_node, payload_bandwidth(context.nic, context.transport.efficiency));
  if (g > 1) {
    per_byte = std::max(
        per_byte, per_byte_at(skew.nvlink * nvlink, ring_bus_bandwidth(context.gpu.collectives)));
  }
  return {.algorithm = algorithm,
          .protocol = "simple",
          .latency = context.start + (k - 1) * context.transport.hop_latency +
                     (messages - (k - 1)) * kPerMessage,
          .per_byte = per_byte,
          .nvlink_coefficient = nvlink,
          .network_coefficient = off_node};
}

}  // namespace

/// Every member to every other by its own NIC; with send/receive, to one.
void pairwise_law(const CollectiveContext& context, std::vector<CollectiveCandidate>& out) {
  if (context.k == 1) return add_regimes(context, "pairwise", out);
  if (context.op == CollectiveOp::send_receive) return send_receive(context, out);
  const double n = context.n, g = context.g;
  out.push_back(all_to_all(context, "pairwise", (g - 1) / n, n - g));
}

/// Each member's off-node share leaves on the destination's rail: what is meant for another rail
/// first crosses NVLink to the member beside it (PXN), which sends one message per node for all.
void two_level_law(const CollectiveContext& context, std::vector<CollectiveCandidate>& out) {
  const double n = context.n, g = context.g, k = context.k;
  const double nvlink = (g - 1) / n + (n - g) / n * (g - 1) / g;
  out.push_back(all_to_all(context, kTwoLevel, nvlink, k - 1));
}

}  // namespace lockstep
