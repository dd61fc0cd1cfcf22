#include "models/collectives/in_node.hpp"

#include <algorithm>
#include <cmath>

namespace lockstep {

namespace {

constexpr std::string_view kNvls = "nvls";

const std::vector<CollectiveRegime>& regimes_of(CollectiveOp op,
                                                const IntraNodeCollectives& presets) {
  switch (op) {
    case CollectiveOp::all_reduce:
      return presets.all_reduce;
    case CollectiveOp::all_gather:
    case CollectiveOp::broadcast:
      return presets.all_gather;
    case CollectiveOp::reduce_scatter:
    case CollectiveOp::reduce:
      return presets.reduce_scatter;
    case CollectiveOp::all_to_all:
      return presets.all_to_all;
    case CollectiveOp::send_receive:
      return presets.send_receive;
  }
  return presets.send_receive;
}

std::string_view protocol_of(const CollectiveRegime& regime) {
  if (regime.name.starts_with("tiny")) return "ll";
  if (regime.name.starts_with("low_latency")) return "ll128";
  return "simple";
}

}  // namespace

void add_in_node_candidates(CollectiveOp op, int ranks, const IntraNodeCollectives& presets,
                            std::vector<CollectiveCandidate>& out) {
  const double n = ranks;
  const bool pairs = op == CollectiveOp::all_to_all || op == CollectiveOp::send_receive;
  const std::vector<CollectiveRegime>& regimes = regimes_of(op, presets);
  const bool some_serve = std::ranges::any_of(
      regimes, [ranks](const CollectiveRegime& regime) { return ranks >= regime.min_ranks; });
  for (const CollectiveRegime& regime : regimes) {
    if (some_serve && ranks < regime.min_ranks) continue;
    // The switch reduces: each member sends its buffer once, and 1/n of the result for the others.
    const bool in_switch = regime.name == kNvls;
    out.push_back({.algorithm = in_switch ? kNvls
                                : pairs   ? "pairwise"
                                          : "ring",
                   .protocol = protocol_of(regime),
                   .latency = regime.base + ring_steps(op, ranks) * regime.per_step,
                   .per_byte = per_byte_at(bus_factor(op, ranks), regime.bus_bandwidth),
                   .nvlink_coefficient = in_switch ? (n + 1) / n : bus_factor(op, ranks),
                   .network_coefficient = 0});
  }
}

LargeRing large_ring(CollectiveOp op, int ranks, const IntraNodeCollectives& presets) {
  LargeRing out{};
  for (const CollectiveRegime& regime : regimes_of(op, presets)) {
    if (regime.name == kNvls || regime.bus_bandwidth <= out.bus_bandwidth) continue;
    out = {regime.base + ring_steps(op, ranks) * regime.per_step, regime.bus_bandwidth};
  }
  return out;
}

BytesPerSecond ring_bus_bandwidth(const IntraNodeCollectives& presets) {
  // Regimes blend as in smooth_minimum: for large payloads their rates add up as p-norms.
  double rings = 0, all = 0;
  for (const CollectiveRegime& regime : presets.all_reduce) {
    const double power = std::pow(regime.bus_bandwidth.base_units() / 1e9, kSharpnessInNode);
    all += power;
    if (regime.name != kNvls) rings += power;
  }
  return gigabytes_per_second(std::pow(rings > 0 ? rings : all, 1 / kSharpnessInNode));
}

BytesPerSecond nvls_bus_bandwidth(const IntraNodeCollectives& presets) {
  const auto nvls = std::ranges::find(presets.all_reduce, kNvls, &CollectiveRegime::name);
  return nvls != presets.all_reduce.end() ? nvls->bus_bandwidth : BytesPerSecond{};
}

int nvls_least_ranks(const IntraNodeCollectives& presets) {
  const auto nvls = std::ranges::find(presets.all_reduce, kNvls, &CollectiveRegime::name);
  return nvls != presets.all_reduce.end() ? nvls->min_ranks : 0;
}

Seconds nvls_member_latency(const IntraNodeCollectives& presets, int ranks) {
  const auto nvls = std::ranges::find(presets.all_reduce, kNvls, &CollectiveRegime::name);
  if (nvls == presets.all_reduce.end()) return {};
  return ring_steps(CollectiveOp::all_reduce, ranks) * nvls->per_step;
}

}  // namespace lockstep
