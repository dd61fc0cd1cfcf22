#include "models/collectives/laws.hpp"

namespace lockstep {

/// Reduce-scatter inside every node, an all-reduce of the share of each rail across nodes, and an
/// all-gather inside: three collectives, one after the other, each at its best.
void hierarchical_law(const CollectiveContext& context, std::vector<CollectiveCandidate>& out) {
  const int g = context.g, k = context.k;
  // Candidates of the parts are lines; a part is the one that is fastest for large payloads.
  const auto fastest = [&](CollectiveOp op, int members, int per_node) {
    CollectiveContext part =
        unpack({.op = op, .payload = {}, .ranks = members, .ranks_per_node = per_node}, context.gpu,
               context.transport, {context.nic, context.gpus_per_nic}, context.options);
    std::vector<CollectiveCandidate> lines;
    ring_law(part, lines);
    CollectiveCandidate best = lines.front();
    for (const CollectiveCandidate& line : lines) {
      if (line.per_byte < best.per_byte) best = line;
    }
    return best;
  };
  const int most = context.most;
  const CollectiveCandidate scatter = fastest(CollectiveOp::reduce_scatter, most, most);
  const CollectiveCandidate across = fastest(CollectiveOp::all_reduce, k, 1);
  const CollectiveCandidate gather = fastest(CollectiveOp::all_gather, most, most);
  out.push_back({.algorithm = "hierarchical",
                 .protocol = "simple",
                 .latency = scatter.latency + across.latency + gather.latency,
                 .per_byte = scatter.per_byte + across.per_byte / g + gather.per_byte,
                 .nvlink_coefficient = bus_factor(CollectiveOp::all_reduce, g),
                 .network_coefficient = across.network_coefficient / g});
}

}  // namespace lockstep
