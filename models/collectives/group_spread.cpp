#include "models/collectives/group_spread.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace lockstep {

DomainSpreads::DomainSpreads(std::vector<DomainSpread> ways) : ways_(std::move(ways)) {
  assert(!ways_.empty() && "groups lie somewhere");
}

bool DomainSpreads::inside(int ranks) const {
  return std::ranges::all_of(
      ways_, [ranks](const DomainSpread& spread) { return spread.per_domain >= ranks; });
}

CollectiveCall placed(CollectiveCall call, const DomainSpread& spread) {
  call.ranks_per_node = spread.per_domain;
  call.nodes = spread.domains;
  call.ranks_per_node_max = spread.per_domain_max;
  return call;
}

const CollectiveCost& slower(const CollectiveCost& a, const CollectiveCost& b, Bytes payload) {
  const auto time = [&](const CollectiveCost& c) { return c.latency + payload / c.payload_rate; };
  return time(b) > time(a) ? b : a;
}

CollectiveCost slowest_cost(const CollectiveCall& call, const DomainSpreads& spreads,
                            const GpuSpec& gpu, const TransportSpec& transport, NicShare nic) {
  const auto cost_of = [&](const DomainSpread& spread) {
    return collective_cost(placed(call, spread), gpu, transport, nic);
  };
  CollectiveCost slowest = cost_of(spreads.ways().front());
  int channels = slowest.channels;
  for (std::size_t i = 1; i < spreads.ways().size(); ++i) {
    const CollectiveCost cost = cost_of(spreads.ways()[i]);
    channels = std::max(channels, cost.channels);
    slowest = slower(slowest, cost, call.payload);
  }
  // A group with few rails may be the slowest: the others have channels on all of theirs.
  slowest.channels = channels;
  return slowest;
}

}  // namespace lockstep
