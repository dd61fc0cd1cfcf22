#include <algorithm>

#include "models/collectives/in_node.hpp"
#include "models/collectives/laws.hpp"

namespace lockstep {

namespace {

// All-gather, reduce-scatter, broadcast and reduce across nodes. Source: fitted to 210 rows of
// public nccl-tests logs over 2 to 256 nodes.
constexpr double kLl128Share = 0.067;

/// The least that a channel's part of a step has for NCCL to cut it in two slices. Source: a slice
/// is at least 1/32 of two steps of 512 KiB, NCCL src/device/prims_simple.h and src/init.cc.
constexpr Bytes kSlice{32.0 * 1024};

/// LL carries four bytes of eight, LL128 120 of 128, and a hop takes 2.7 us against 4 us. Source:
/// NCCL src/graph/tuning.cc.
constexpr double kLlOfLl128 = 0.53;
constexpr Seconds kLl128PerNode = microseconds(1.3);

/// Of a ring in Simple: as many channels as a node has members, each with its part of a step. On
/// ALCF Polaris (four members) a step takes twice as long from 256 KiB on as up to 128 KiB.
MessagePace pace_of(const CollectiveContext& context) {
  return {.steps = ring_steps(context.op, context.n),
          .each = context.transport.ring_message_time,
          .split = static_cast<double>(context.n) * context.g * kSlice};
}

CollectiveCandidate ring(const CollectiveContext& context, std::string_view protocol,
                         Seconds latency, double share) {
  const double g = context.g;
  const double bus = bus_factor(context.op, context.n);
  return {.algorithm = "ring",
          .protocol = protocol,
          .latency = latency,
          .per_byte = per_byte_at(bus, share * ring_plateau(context)),
          .nvlink_coefficient = bus * (g - 1) / g,
          .network_coefficient = bus / g};
}

/// Twice around the ring: k - 1 times into the next node, n - k times over NVLink.
void all_reduce(const CollectiveContext& context, std::vector<CollectiveCandidate>& out) {
  const double n = context.n, k = context.k;
  const TransportSpec& transport = context.transport;
  const Seconds start = context.start;
  const Seconds hops = 2 * (k - 1) * transport.hop_latency;
  // Beyond those of the fullest node, which are in `start`: 2 (k - 1) (g - 1) of an even group.
  const double inside = 2 * (n - k - (context.most - 1));
  // The plateau that low-latency protocols take their share of is the better one of ring and tree.
  const double of_ring =
      std::max(ring_plateau(context), nvls_tree_plateau(context)) / ring_plateau(context);
  out.push_back(
      ring(context, "ll", start + hops + inside * kRingPerMemberLl, kReduceLlShare * of_ring));
  out.push_back(ring(context, "ll128",
                     start + hops + (k - 1) * transport.ll128_latency + inside * kRingPerMember,
                     kReduceLl128Share * of_ring));
  out.push_back(ring(context, "simple",
                     start + kReduceBase + kReduceBaseHops * transport.hop_latency +
                         (k - 1) * kReducePerNode + 2 * (n - k) * kRingPerMember,
                     1));
  out.back().pace = pace_of(context);
}

}  // namespace

void ring_law(const CollectiveContext& context, std::vector<CollectiveCandidate>& out) {
  if (context.k == 1) return add_regimes(context, "ring", out);
  if (context.op == CollectiveOp::all_reduce) return all_reduce(context, out);
  const double n = context.n, k = context.k;
  const Seconds hops = (k - 1) * context.transport.ring_hop_latency;
  const Seconds simple_hops = context.transport.simple_ring_hops * hops;
  out.push_back(ring(context, "ll", context.start + hops, kLlOfLl128 * kLl128Share));
  out.push_back(
      ring(context, "ll128", context.start + hops + (k - 1) * kLl128PerNode, kLl128Share));
  out.push_back(ring(context, "simple", context.start + simple_hops + (n - k) * kRingPerMember, 1));
  // Broadcast and reduce pass what they have on in pieces, as many as they like.
  if (context.op == CollectiveOp::all_gather || context.op == CollectiveOp::reduce_scatter) {
    out.back().pace = pace_of(context);
  }
  if (context.most <= kFittedMembers) return;
  // Larger domains than the constants above are fitted to: the ring passes through each of them as
  // one of their own does, no faster and no sooner.
  CollectiveCandidate& simple = out.back();
  const LargeRing inside = large_ring(context.op, context.most, context.gpu.collectives);
  const double bus = bus_factor(context.op, context.n);
  simple.latency = std::max(simple.latency, inside.latency + simple_hops);
  simple.per_byte = std::max(simple.per_byte, per_byte_at(bus, inside.bus_bandwidth));
}

}  // namespace lockstep
