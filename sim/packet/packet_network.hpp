/// What the packet-level referee runs: directed links, and flows that cross them packet by packet.
/// It knows nothing of fabrics or collectives; fabric_packets.hpp makes one from a Fabric.
#pragma once

#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "models/base/units.hpp"
#include "sim/core/clock.hpp"
#include "sim/core/max_min.hpp"

namespace lockstep {

/// One direction of a cable, with the transmitter at its start and the input port at its end.
struct PacketLink {
  BytesPerSecond rate;  ///< of the wire, headers included
  Seconds latency;      ///< of the cable, one way
  std::uint32_t from = 0, to = 0;
};

/// A message. A packet leaves the source when the transmitter of the first link takes it.
struct PacketFlow {
  /// Links from source to destination. Several: packets are sprayed, each round over all paths in
  /// an order drawn anew. All paths begin with the same link, end at the same vertex, and are
  /// connected.
  std::vector<std::vector<LinkIndex>> paths;
  std::uint64_t bytes = 0;  ///< at least 1
  StepTime start;
  std::uint8_t lane = 0;  ///< virtual lane (InfiniBand) or priority (Ethernet), on all links
  /// Of a ring: the flow whose message the source passes on. It begins a packet while it has sent
  /// less than `lead` bytes, at least 1, beyond what of that one has arrived. kNone: it has
  /// everything at the start.
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
  std::uint32_t after = kNone;
  std::uint64_t lead = 0;
};

/// Flows that begin together, `gap` after all of others have arrived: a job that computes between
/// its exchanges. Their own `start` counts for nothing.
struct PacketRound {
  std::uint32_t first = 0, count = 1;              ///< the flows
  std::uint32_t after_first = 0, after_count = 1;  ///< those that arrive before
  Seconds gap;                                     ///< at least 0
};

struct PacketNetwork {
  std::vector<PacketLink> links;
  /// By vertex: how long a packet that has arrived whole takes to its output queue; in a host, to
  /// memory. One more than the largest vertex number of the links.
  std::vector<Seconds> forwarding;
  std::vector<PacketFlow> flows;
  /// A flow is in one of them at most, and one at most waits for it.
  std::vector<PacketRound> rounds;
};

/// What is wrong with the network, in words; empty: nothing.
std::string_view mistake(const PacketNetwork& network);

/// Time of `bytes` on the wire, to the nearest tick, as the referee counts it.
StepTime serialisation(const PacketLink& link, std::uint64_t bytes);
/// Time from the last bit's departure at the source to its delivery if all queues are empty: cables
/// and forwarding, without serialisation. The longest of the flow's paths.
Seconds path_latency(const PacketNetwork& network, const PacketFlow& flow);

}  // namespace lockstep
