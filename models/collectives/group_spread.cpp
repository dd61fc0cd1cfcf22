#include "models/collectives/group_spread.hpp"

#include <algorithm>
#include <cassert>
#include <optional>
#include <utility>

#include "models/collectives/algorithms.hpp"

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
                            std::span<const MemberCard> cards, const TransportSpec& transport,
                            const CollectiveOptions& options) {
  assert(!cards.empty() && "members are on some card");
  std::optional<CollectiveCost> slowest;
  int channels = 0;
  for (const MemberCard& card : cards) {
    for (const DomainSpread& spread : spreads.ways()) {
      const CollectiveCost cost =
          collective_cost(placed(call, spread), card.gpu, transport, card.nic, options);
      channels = std::max(channels, cost.channels);
      slowest = slowest ? slower(*slowest, cost, call.payload) : cost;
    }
  }
  // A group with few rails may be the slowest: the others have channels on all of theirs.
  slowest.value().channels = channels;
  return *slowest;
}

CollectiveCost slowest_cost(const CollectiveCall& call, const DomainSpreads& spreads,
                            const GpuSpec& gpu, const TransportSpec& transport, NicShare nic) {
  const MemberCard card{gpu, nic};
  return slowest_cost(call, spreads, {&card, 1}, transport);
}

}  // namespace lockstep
