/// The ways of keys and values between two pools: over NVLink inside a domain, else over NICs and
/// the links of the fabric.
///
/// Replicas fill nodes in the order of pools and ranks; one that would straddle a node begins on
/// the next, where the machine has room. A transfer is one flow: its progress is that of its
/// largest stream between two ranks, its coefficients say how many such cross each link. Ports of a
/// group of ranks that nobody else uses always carry the same parts of what the group sends or gets
/// (each rank has an equal part, whoever is at the other end): the fullest of them stands for all,
/// which is exact. `efficiency` of a transfer is that of its ports' line rate; links between
/// switches carry what the transport gives payload.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <unordered_map>
#include <vector>

#include "sim/core/flow_network.hpp"
#include "sim/scenario/serving_spec.hpp"
#include "sim/serving/kv_shards.hpp"
#include "sim/step/site.hpp"

namespace lockstep {

/// Of a pool's replicas.
KvCut kv_cut(const ServingPool& pool);

/// The first GPU of each replica, of both pools, counted over the service's nodes: the pools fill
/// them one after the other, or where the cluster has nodes of several kinds those of their own.
std::array<std::vector<int>, 2> place_replicas(const ServingSpec& spec);

/// One end of a transfer: which replica of its pool, and which of its groups.
struct KvEnd {
  std::uint32_t replica = 0, group = 0;
};

/// A flow that somebody sends over, one transfer at a time.
struct KvChannel {
  FlowIndex flow = 0;
  std::uint32_t pair = 0;
  double unit = 1;       ///< bytes of the flow's progress for each byte
  BytesPerSecond alone;  ///< at which bytes go with the links to themselves
};

class KvNetwork {
 public:
  /// Told of each flow that is added, and of what it is.
  using Told = std::function<void(FlowIndex flow, double unit, const KvEnd& from, const KvEnd& to,
                                  std::size_t number)>;

  /// Requires two pools; all outlive this.
  KvNetwork(const ServingSpec& spec, FabricLinks& links, Told told = {});

  KvChannel take(const KvEnd& from, const KvEnd& to);
  void give(const KvChannel& channel) { pairs_[channel.pair].free.push_back(channel.flow); }

  [[nodiscard]] FlowNetwork& network() { return links_.network(); }
  [[nodiscard]] const KvCut& cut(std::size_t pool) const { return cuts_[pool]; }

 private:
  using Loads = std::map<LinkIndex, double>;  ///< of links, for each byte of a transfer
  struct Pair {
    std::vector<FlowEdge> edges{};
    double unit = 1;
    BytesPerSecond alone;
    std::vector<FlowIndex> free{};
    std::size_t flows = 0;
  };

  [[nodiscard]] int gpu_of(std::size_t pool, const KvEnd& end, int rank) const;
  [[nodiscard]] int node_of(int gpu) const;  ///< of the fabric
  [[nodiscard]] const GpuSpec& card_of(int gpu) const;
  [[nodiscard]] int port_of(int gpu) const;
  [[nodiscard]] int domain_of(int gpu) const;
  [[nodiscard]] bool folds(std::size_t pool, const KvEnd& end) const;
  void count_users();
  void fold(const Loads& ports, bool folded, Loads& out) const;
  LinkIndex inside(int gpu, bool up, bool nvlink);
  Pair wire(const KvEnd& from, const KvEnd& to);

  const ServingSpec& spec_;
  FabricLinks& links_;
  Told told_;
  NicPorts ports_;
  std::array<KvCut, 2> cuts_;
  std::array<std::vector<int>, 2> first_;
  std::vector<std::array<int, 2>> port_users_;  ///< by node and port of the service: groups
  std::vector<std::array<bool, 2>> domains_;    ///< by domain: pools that are there
  std::map<int, LinkIndex> inside_;             ///< links of a GPU to others beside it
  std::unordered_map<std::uint64_t, std::uint32_t> pair_of_;
  std::vector<Pair> pairs_;
  std::vector<RouteHop> hops_, own_;
};

}  // namespace lockstep
