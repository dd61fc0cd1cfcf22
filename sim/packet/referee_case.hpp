/// A case of the referee: a small fabric, what is wrong with it, and messages; as its file says it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/input/json_cursor.hpp"
#include "sim/packet/fabric_packets.hpp"

namespace lockstep {

struct RefereeMessage {
  PortNumber from = 0, to = 0;
  std::uint64_t bytes = 0;
  Seconds start;
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
/// (pairs). Sizes are taken in turn; message i starts at start + i * stagger. Throws InputError for
/// anything that the referee cannot run.
std::vector<RefereeCase> read_referee_cases(const std::string& file, std::string_view text);

}  // namespace lockstep
