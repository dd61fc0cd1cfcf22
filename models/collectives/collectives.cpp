#include "models/collectives/collectives.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <vector>

#include "models/collectives/algorithms.hpp"
#include "models/collectives/candidate.hpp"
#include "models/collectives/in_node.hpp"

namespace lockstep {

namespace {

/// p of smooth_minimum across nodes, where protocols blend more than inside one. Source: fitted.
constexpr double kSharpnessAcrossNodes = 6;

constexpr std::array kCollectiveKinds{
    CollectiveKind{CollectiveOp::all_reduce, "all_reduce",
                   "Sum over all members, to all: ring 2(n-1)/n per edge, NVLS (n+1)/n, tree.",
                   "Patarasuk and Yuan 2009, J. Parallel Distrib. Comput. 69, 117-124; NCCL "
                   "src/graph/tuning.cc"},
    CollectiveKind{CollectiveOp::all_gather, "all_gather",
                   "Every member's part, to all: ring, (n-1)/n of the gathered buffer per edge.",
                   "NVIDIA nccl-tests doc/PERFORMANCE.md; NCCL src/graph/tuning.cc"},
    CollectiveKind{CollectiveOp::reduce_scatter, "reduce_scatter",
                   "Sum over all members, a part to each: ring, (n-1)/n of the input per edge.",
                   "NVIDIA nccl-tests doc/PERFORMANCE.md; NCCL src/graph/tuning.cc"},
    CollectiveKind{CollectiveOp::all_to_all, "all_to_all",
                   "1/n of each buffer to every member; off-node parts gathered onto rails (PXN).",
                   "NVIDIA nccl-tests doc/PERFORMANCE.md; NVIDIA blog, NCCL 2.12 PXN (2022)"},
    CollectiveKind{CollectiveOp::broadcast, "broadcast",
                   "One member's buffer to all: pipelined ring, the whole payload per edge.",
                   "NVIDIA nccl-tests doc/PERFORMANCE.md; NCCL src/graph/tuning.cc"},
    CollectiveKind{CollectiveOp::send_receive, "send_receive", "One message between two members.",
                   "NVIDIA nccl-tests doc/PERFORMANCE.md"},
    CollectiveKind{CollectiveOp::reduce, "reduce",
                   "Sum over all members, to one: pipelined ring, the whole payload per edge.",
                   "NVIDIA nccl-tests doc/PERFORMANCE.md; NCCL src/graph/tuning.cc"},
};

/// The cost whose time is `ratio` times as long. No rate rises above what the links carry; what is
/// left of a faster collective then comes off its latency.
CollectiveCost scaled(CollectiveCost cost, double ratio, const CollectiveCall& call,
                      const GpuSpec& gpu, BytesPerSecond nic) {
  const Seconds time = ratio * (cost.latency + call.payload / cost.payload_rate);
  const BytesPerSecond law = cost.payload_rate;
  cost.latency = ratio * cost.latency;
  cost.payload_rate = 1 / ratio * law;
  BytesPerSecond most = cost.payload_rate;
  if (cost.network_coefficient > 0) most = std::min(most, 1 / cost.network_coefficient * nic);
  if (cost.nvlink_coefficient > 0 && gpu.nvlink_bandwidth > BytesPerSecond{}) {
    most = std::min(most, 1 / cost.nvlink_coefficient * gpu.nvlink_bandwidth);
  }
  if (most < cost.payload_rate && ratio < 1) {
    cost.payload_rate = std::max(most, law);
    cost.latency = std::max(Seconds{}, time - call.payload / cost.payload_rate);
  }
  return cost;
}

}  // namespace

CollectiveCost blend(const CollectiveContext& context,
                     const std::vector<CollectiveCandidate>& candidates, Bytes payload) {
  const BytesPerSecond carried = payload_bandwidth(context.nic, context.transport.efficiency);
  const auto blended = [&](std::span<const CollectiveCandidate> of, double sharpness) {
    CollectiveCost cost = smooth_minimum(of, payload, carried, sharpness);
    cost.channels = shape_channels(context, cost.algorithm);
    return cost;
  };
  if (context.k == 1) return blended(candidates, kSharpnessInNode);
  std::vector<CollectiveCandidate> fastest;
  for (const CollectiveCandidate& candidate : candidates) {
    const auto same =
        std::ranges::find(fastest, candidate.protocol, &CollectiveCandidate::protocol);
    if (same == fastest.end()) {
      fastest.push_back(candidate);
    } else if (candidate.time(payload) < same->time(payload)) {
      *same = candidate;
    }
  }
  return blended(fastest, kSharpnessAcrossNodes);
}

CollectiveCost collective_cost(const CollectiveCall& call, const GpuSpec& gpu,
                               const TransportSpec& transport, NicShare nic) {
  static const CollectiveOptions as_nccl_does;
  return collective_cost(call, gpu, transport, nic, as_nccl_does);
}

CollectiveCost collective_cost(const CollectiveCall& call, const GpuSpec& gpu,
                               const TransportSpec& transport, NicShare nic,
                               const CollectiveOptions& options) {
  assert(call.ranks >= 2 && call.ranks_per_node >= 1);
  assert(call.payload >= Bytes{} && nic.bandwidth > BytesPerSecond{});
  const CollectiveContext context = unpack(call, gpu, transport, nic, options);
  std::vector<CollectiveCandidate> candidates;
  candidates.reserve(8);
  for (const CollectiveAlgorithm& algorithm : collective_algorithms()) {
    if (availability_of(algorithm, context).offer == Offer::weighed) {
      add_candidates(algorithm, context, candidates);
    }
  }
  const CollectiveCost law = blend(context, candidates, call.payload);
  if (!gpu.profile) return law;
  return scaled(law, measured_ratio(*gpu.profile, call), call, gpu,
                payload_bandwidth(nic.bandwidth, transport.efficiency));
}

Seconds collective_time(const CollectiveCall& call, const GpuSpec& gpu,
                        const TransportSpec& transport, NicShare nic) {
  const CollectiveCost cost = collective_cost(call, gpu, transport, nic);
  return cost.latency + call.payload / cost.payload_rate;
}

std::span<const CollectiveKind> collective_kinds() { return kCollectiveKinds; }

}  // namespace lockstep
