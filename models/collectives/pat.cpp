#include <cmath>

#include "models/collectives/laws.hpp"

namespace lockstep {

namespace {

// Source: NCCL src/graph/tuning.cc, PAT: base, per rank, steps in flight at once, share of the bus.
constexpr Seconds kBase = microseconds(8);
constexpr Seconds kPerRank = microseconds(2.8);
constexpr double kStepsAtOnce = 3.5;
constexpr double kBusShare = 0.75;
/// Of a network step, beside the transport's hop. Source: as above.
constexpr Seconds kStep = microseconds(14);

}  // namespace

/// Parallel aggregated trees: log2 n steps, the farthest members first (pat_shape()).
void pat_law(const CollectiveContext& context, std::vector<CollectiveCandidate>& out) {
  const double n = context.n;
  const double bus = bus_factor(context.op, context.n);
  const Seconds step = kStep + context.transport.hop_latency;
  out.push_back({.algorithm = "pat",
                 .protocol = "simple",
                 .latency = kBase + std::log2(n) / kStepsAtOnce * step + n * kPerRank,
                 .per_byte = per_byte_at(bus, kBusShare * context.node),
                 .nvlink_coefficient = 0,
                 .network_coefficient = bus});
}

}  // namespace lockstep
