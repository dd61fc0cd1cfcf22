/// Traffic that a scenario puts on a cluster's fabric: permutations, incasts, all-to-alls, rings.
/// read_traffic.hpp makes it from JSON, simulate_traffic.hpp runs it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/base/units.hpp"
#include "models/collectives/collectives.hpp"
#include "sim/scenario/claim.hpp"
#include "sim/scenario/read_cluster.hpp"

namespace lockstep {

enum class TrafficKind : std::uint8_t {
  permutation,
  shift,
  incast,
  outcast,
  pairs,
  storage,
  all_to_all,
  send_receive,
  all_reduce,
  all_gather,
  reduce_scatter,
  broadcast,
  reduce,
};

/// What one max-min variable stands for.
enum class Grain : std::uint8_t {
  flows,     ///< each pair of sender and receiver
  sources,   ///< all that one sender sends, at equal rates
  coupled,   ///< the whole pattern, at equal rates: as fast as its slowest pair
  messages,  ///< each step of a ring, which waits for the step before
  nccl,      ///< a collective of GPUs as NCCL runs it: its algorithm, latency and pace
};

/// One row per kind, in the order of the enumeration: for the reader, the listing and the notes.
struct TrafficKindInfo {
  TrafficKind kind;
  std::string_view name;
  std::string_view summary;
  std::string_view size;                          ///< what "size" counts
  Grain grain;                                    ///< unless the scenario says, or NCCL runs it
  bool is_ring;                                   ///< a collective around rings
  std::optional<CollectiveOp> op = std::nullopt;  ///< NCCL's, among GPUs that say nothing of rings
  bool is_chain = false;  ///< a ring that is open at its root: from it, or (reduce) to it
};
std::span<const TrafficKindInfo> traffic_kinds();
const TrafficKindInfo& info(TrafficKind kind);
/// In the order of Grain.
std::span<const std::string_view> grain_names();

/// Which NICs or GPUs take part: `count` of those numbered first, first + stride, ... over the
/// nodes first_node to first_node + nodes, in that order or, with a seed, drawn at random from
/// those.
struct MemberSpec {
  bool nics = false;  ///< NIC ports; else GPUs, which reach their like over NVLink
  int first_node = 0;
  int nodes = 0;
  int first = 0;
  int stride = 1;
  int count = 0;
  std::optional<std::uint64_t> shuffle_seed;
};

/// How members fall into groups that run the same pattern side by side.
struct GroupSpec {
  enum class Spread : std::uint8_t {
    consecutive,  ///< 0 0 0 1 1 1
    strided,      ///< 0 1 2 0 1 2
  };
  int count = 1;
  Spread spread = Spread::consecutive;
};

/// Bytes, the same for all or uniform between two, ends included.
struct SizeSpec {
  Bytes least;
  Bytes most;
  [[nodiscard]] bool varies() const { return least != most; }
};

struct TrafficEntry {
  std::string name;
  TrafficKind kind = TrafficKind::permutation;
  MemberSpec members;
  GroupSpec groups;
  SizeSpec size;
  Grain grain = Grain::flows;
  Seconds start;
  int repeat = 1;    ///< each sender's messages, one after another
  Seconds gap;       ///< between the end of one and the next
  int channels = 1;  ///< rings side by side, each on its own rail
  std::uint64_t seed = 1;
  int by = 1;    ///< shift: how many members further
  int root = 0;  ///< incast, outcast, broadcast, reduce: a member's position in its group
  std::vector<std::pair<int, int>> pairs;  ///< positions of members
  std::optional<MemberSpec> servers;       ///< storage
  bool reads = false;                      ///< storage: servers send
};

/// What the scenario's author expects.
struct TrafficExpectation {
  std::optional<Seconds> time;  ///< of the last end
  double within = 0.01;
  Claim claim;
  std::string source;
};

struct TrafficScenario {
  std::string file;  ///< for messages
  std::string about;
  Cluster cluster;
  double efficiency = 1;  ///< payload over line rate, of NICs and switch links
  std::vector<TrafficEntry> entries;
  std::optional<TrafficExpectation> expect;
  std::vector<std::string> assumptions;
};

}  // namespace lockstep
