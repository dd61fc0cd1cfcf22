/// A case of the referee: a small fabric, what is wrong with it, and messages; as its file says it.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/json_cursor.hpp"
#include "models/collectives/collectives.hpp"
#include "sim/packet/fabric_packets.hpp"

namespace lockstep {

struct RefereeMessage {
  PortNumber from = 0, to = 0;
  std::uint64_t bytes = 0;
  Seconds start;
  std::uint64_t queue_pair = 0;             ///< feeds the hash of ECMP
  std::uint32_t after = PacketFlow::kNone;  ///< of a ring: the message that it passes on, and
  std::uint64_t lead = 0;                   ///< how many bytes it has without that one
};

/// What the flow level moves as one: a message, or all messages of a collective.
struct RefereeTransfer {
  std::size_t first = 0, count = 1;            ///< messages of the case
  std::uint64_t bytes = 0;                     ///< of the message, or the collective's size
  std::string members;                         ///< of a collective: "nodes 0, 2"
  std::string name;                            ///< of a collective: "all_to_all of nodes 0, 2"
  CollectiveOp op = CollectiveOp::all_to_all;  ///< of a collective, and
  std::string_view algorithm;                  ///< what collective_shape() takes
  /// Of a later round of a collective: it begins `gap` after this transfer has arrived.
  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();
  std::size_t after = kNone;
  Seconds gap;
};

/// A link that is not what the fabric says.
struct RefereeFault {
  LinkIndex link = 0;
  double rate_share = 0;  ///< of its rate; 0: dead, and no route uses it
};

struct RefereeCase {
  std::string name;
  std::string place;  ///< of its traffic: "cases.json#/cases/3/traffic"
  std::string about;
  FabricSpec fabric;  ///< routed by ECMP, so that links are cables; `spray` says how messages go
  int nodes = 0;
  int nics = 1;
  BytesPerSecond nic_bandwidth;
  Seconds cable_latency;
  bool spray = false;
  std::vector<RefereeFault> faults;
  std::vector<RefereeMessage> messages;
  std::vector<RefereeTransfer> transfers;  ///< every message is in one
};

/// Packets that all messages together send over all links, about: each message crosses a link up
/// and one down for every level of the fabric.
double packet_hops(const RefereeCase& of);

/// The cases of a file:
///
///     {"about": ..., "cable_latency": T, "switch_latency": T, "link": R,
///      "cases": [{"name": ..., "about": ...,
///        "fabric": {"kind": K, "nodes": n, "nics": n, "levels": 2|3, "leaf_ports_down": n,
///                   "pod_leaves": n, "leaf_oversubscription": x, "spine_oversubscription": x,
///                   "routing": "ecmp"|"spray", "slow": [{"link": NAME, "share": x}],
///                   "dead": [NAME, ...]},
///        "traffic": [{"pattern": P, "sizes": [S, ...], "start": T, "stagger": T, ...}]}]}
///
/// Patterns, over NIC ports: `permutation` (seed), `shift` (by), `incast` (senders, to, step),
/// `ring` (members, count: ring r has ports r, r + count, ...), `all_to_all` (ports), `pairs`
/// (pairs). Sizes are taken in turn; message i starts at start + i * stagger.
///
///     {"pattern": "collective", "op": O, "algorithm": A, "size": S, "nodes": [n, ...],
///      "seed": n, "start": T, "rounds": n, "gap": T}
///
/// is a collective among the GPUs of those nodes (all of them unless it says so), one GPU a NIC,
/// with NVLink between those of a node, which neither level counts. `size` is nccl-tests' size. Who
/// sends what comes from collective_shape(), and the hash from the seed as in traffic scenarios, so
/// that at flow level it is what `lockstep comm` runs: one transfer, as fast as its slowest link
/// lets it. It runs `rounds` times, each a transfer that begins `gap` after the one before has
/// arrived everywhere: a job that computes between its exchanges. Throws InputError for anything
/// that the referee cannot run.
std::vector<RefereeCase> read_referee_cases(const std::string& file, std::string_view text);

}  // namespace lockstep
