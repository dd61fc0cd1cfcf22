/// What the collective of a group puts on the links of a fabric, for whoever has the bytes that its
/// members send: who sends to whom is the shape of the algorithm as NCCL runs it.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "sim/fabric/collective_load.hpp"

namespace lockstep {

/// A collective, as far as it decides who sends what to whom.
struct GroupCollective {
  CollectiveOp op = CollectiveOp::all_reduce;
  std::string_view algorithm;  ///< of collective_algorithms()
  int peer_channels = 1;       ///< peer_channels(): connections between two that send to each other
  ExchangeSkew skew{};         ///< of an all-to-all
  int channels = 0;            ///< CollectiveCost::channels; 0: two on every rail
};

/// Messages between two members are hashed as those of `comm`: from kFirstHashSeed on. A group that
/// stays in one NVLink domain puts nothing on links.
class GroupUses {
 public:
  /// `fabric` outlives this.
  explicit GroupUses(const Fabric& fabric) : fabric_(fabric) {}

  /// Adds to `uses` what the group puts on links between switches for each byte that a member sends
  /// over its NIC on average, and that byte on the links of each member's NIC: how members differ
  /// is part of the law of a collective, but where it is skewed. Of a group that lies unevenly over
  /// NVLink domains, in a ring or a tree: that each member of the smallest domain sends, which is
  /// what the law counts; a fuller domain sends no more than that one.
  void add(const GroupCollective& collective, std::span<const FabricMember> members,
           std::vector<RouteHop>& uses);

  /// The part of that between switches, `bytes` of each member, by sender: what member m sends goes
  /// to uses[owner[m]], link after link and not added up. A stream that switches sum on the way
  /// (SHARP) is of all members whose bytes are in it, in equal parts.
  void add_by_sender(const GroupCollective& collective, std::span<const FabricMember> members,
                     double bytes, std::span<const std::size_t> owner,
                     std::span<std::vector<RouteHop>> uses);

  /// The messages that a member sends over its NIC at once, on average: one to each other member
  /// that it sends to, and where hashes tell connections apart one over each of them.
  [[nodiscard]] double messages(const GroupCollective& collective,
                                std::span<const FabricMember> members) const;

  /// Of a skewed all-to-all, by member: what its ports carry for each byte that a member sends over
  /// its NIC, and over NVLink, on average. Valid until the next call.
  std::span<const PortBytes> ports(const GroupCollective& collective,
                                   std::span<const FabricMember> members);

 private:
  const Fabric& fabric_;
  std::optional<CollectiveLoad> load_;  ///< of nothing between calls
  std::vector<RouteHop> hops_;
};

}  // namespace lockstep
