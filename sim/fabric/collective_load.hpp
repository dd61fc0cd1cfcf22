/// What collectives put on the links of a fabric: who sends what to whom comes from the shape of
/// the algorithm (models/collectives/channels.hpp), the way of every byte from the fabric's routes.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "models/collectives/candidate.hpp"
#include "models/collectives/channels.hpp"
#include "sim/fabric/fabric_member.hpp"
#include "sim/fabric/summed_streams.hpp"
#include "topologies/fabrics/fabric.hpp"

namespace lockstep {

/// Bytes over every link for each byte of payload, summed over all groups that run at once. Links
/// of NICs are included. A group costs time for the links that it uses, however many there are:
/// whoever asks about many groups one by one takes one CollectiveLoad and clears it.
class CollectiveLoad {
 public:
  /// `fabric` outlives this.
  explicit CollectiveLoad(const Fabric& fabric) : fabric_(fabric), by_link_(fabric.link_count()) {}

  /// Forgets all groups.
  void clear();

  /// Adds a group. `queue_pair` feeds the hash of ECMP fabrics. What switches sum on the way
  /// (SHARP) goes up its rail's tree (summed_streams()). Requires a shape that was made for these
  /// members.
  void add(const CollectiveShape& shape, std::span<const FabricMember> members,
           std::uint64_t queue_pair = 0);

  /// By FabricLink; 0 where nothing passes.
  [[nodiscard]] const std::vector<double>& by_link() const { return by_link_; }
  /// The links that carry anything, ascending.
  [[nodiscard]] const std::vector<FabricLink>& used();

  struct Slowest {
    FabricLink link = 0;
    SecondsPerByte per_byte;  ///< of payload; 0: no link carries anything
  };
  /// The link between switches that takes longest, where payload reaches the share `efficiency` of
  /// the line rate. What NICs at full rate take is part of the law of a collective
  /// (collective_cost()); what slower ones take is slowest_nic().
  [[nodiscard]] Slowest slowest(double efficiency);
  /// The NIC links that carry anything and are slower than their part of a port of `port_rate`, by
  /// a fault or by the cable of a drawing, and what each carries for each byte of payload. As the
  /// law has it, each of these members sends and gets `bytes` through its NIC, on average over the
  /// nodes; GPUs that share a NIC add up. `members`: of all groups that were added.
  [[nodiscard]] std::map<FabricLink, double> slow_nics(std::span<const FabricMember> members,
                                                       double bytes,
                                                       BytesPerSecond port_rate) const;
  /// Of those the one that takes longest.
  [[nodiscard]] Slowest slowest_nic(std::span<const FabricMember> members, double bytes,
                                    BytesPerSecond port_rate, double efficiency) const;

 private:
  void put(FabricLink link, double bytes) {
    if (bytes <= 0) return;
    double& sum = by_link_[link];
    if (sum == 0) used_.push_back(link);
    sum += bytes;
  }
  void add_pairs(const CollectiveShape& shape, std::span<const FabricMember> members,
                 std::uint64_t queue_pair);
  void add_sprayed_edges(std::span<const NetworkEdge> edges, std::span<const FabricMember> members);
  void add_sprayed_pairs(double bytes, std::span<const FabricMember> members);
  void add_in_network(const std::vector<NetworkEdge>& edges, std::span<const FabricMember> members);

  const Fabric& fabric_;
  std::vector<double> by_link_;
  std::vector<FabricLink> used_;       ///< links with a load; ascending after used()
  std::vector<double> pairs_;          ///< by link, of one byte between each pair; 0 between calls
  std::vector<FabricLink> pairs_use_;  ///< links of pairs_ that are not 0
  std::vector<RouteHop> hops_;
};

/// The edges of a shape with its pairs written out; those of switches that sum are left out.
std::vector<NetworkEdge> written_edges(const CollectiveShape& shape,
                                       std::span<const GroupMember> members);

/// Appends what a byte along a network edge crosses, which shares its channels' connections evenly.
/// Requires an edge between two members.
void route_edge(const Fabric& fabric, const NetworkEdge& edge,
                std::span<const FabricMember> members, std::uint64_t queue_pair,
                std::vector<RouteHop>& out);

/// What feeds the hash of ECMP fabrics where nothing else was asked for: the first connection of
/// the first seed, as traffic scenarios draw it.
constexpr std::uint64_t kFirstHashSeed = std::uint64_t{1} << 16U;
}  // namespace lockstep
