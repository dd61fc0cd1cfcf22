/// How groups lie over NVLink domains, and what a collective costs that all of them run at once.
#pragma once

#include <span>
#include <vector>

#include "models/collectives/collective_options.hpp"
#include "models/collectives/collectives.hpp"

namespace lockstep {

/// Of one group. Where its members are spread unevenly, the domain with the fewest counts for the
/// rate: it has the fewest NICs, and NCCL's channels pass through every domain. The fullest one
/// counts for the latency.
struct DomainSpread {
  int per_domain = 1;      ///< members in the domain that has fewest of them
  int domains = 0;         ///< that hold a member; 0: ranks / per_domain, rounded up
  int per_domain_max = 0;  ///< in the domain that has most; 0: CollectiveCall::ranks_per_node_max
  friend bool operator==(const DomainSpread&, const DomainSpread&) = default;
};

/// The different ways in which groups of one kind lie, at least one. Tensor-parallel groups of
/// three on nodes of eight GPUs lie in two: inside a node, and with a member in the next.
class DomainSpreads {
 public:
  /// All groups alike, with so many members in each of their domains.
  /// Implicit: a plain count stands for itself wherever spreads are asked for.
  // NOLINTNEXTLINE(google-explicit-constructor)
  DomainSpreads(int per_domain = 1) : ways_{{per_domain, 0}} {}
  explicit DomainSpreads(std::vector<DomainSpread> ways);

  [[nodiscard]] const std::vector<DomainSpread>& ways() const { return ways_; }
  /// Whether each group of so many ranks is in one domain.
  [[nodiscard]] bool inside(int ranks) const;

 private:
  std::vector<DomainSpread> ways_;
};

/// `call` as a group that lies so runs it.
CollectiveCall placed(CollectiveCall call, const DomainSpread& spread);

/// Of two costs of a call, the one with which it takes longer; the first where both take as long.
const CollectiveCost& slower(const CollectiveCost& a, const CollectiveCost& b, Bytes payload);

/// A card and what it has of its node's NICs: of one kind of node that members are on.
struct MemberCard {
  const GpuSpec& gpu;  ///< outlives this
  NicShare nic;
};

/// The cost of the slowest group, for which a step waits, where its members are on such cards, at
/// least one; its channels: the most that any has.
CollectiveCost slowest_cost(const CollectiveCall& call, const DomainSpreads& spreads,
                            std::span<const MemberCard> cards, const TransportSpec& transport,
                            const CollectiveOptions& options = {});
/// Of members that are all on the same card.
CollectiveCost slowest_cost(const CollectiveCall& call, const DomainSpreads& spreads,
                            const GpuSpec& gpu, const TransportSpec& transport, NicShare nic);

}  // namespace lockstep
