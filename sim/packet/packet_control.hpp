/// The two link layers of the referee, what they assume, and what a run returns.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/core/clock.hpp"
#include "sim/packet/dcqcn.hpp"
#include "sim/packet/packet_network.hpp"

namespace lockstep {

/// How a message is cut. The last packet carries what is left.
struct Framing {
  std::uint32_t payload = 4096;  ///< MTU: bytes of the message in a packet
  std::uint32_t header = 0;      ///< all else that a packet takes on the wire
  [[nodiscard]] std::uint32_t wire() const { return payload + header; }
  /// Share of the wire that carries the message.
  [[nodiscard]] double efficiency() const { return double{1} * payload / wire(); }
};

/// Local route 8, base transport 12, invariant CRC 4, variant CRC 2 bytes.
/// Source: InfiniBand Architecture Specification 1.4, volume 1, sections 7.7, 7.8, 9.2. The 16
/// bytes of the first packet's RDMA header are left out.
inline constexpr Framing kInfinibandFraming{.payload = 4096, .header = 26};
/// Preamble 8, Ethernet 14, IPv4 20, UDP 8, base transport 12, invariant CRC 4, frame check 4, gap
/// 12 bytes. Source: IEEE 802.3-2018 clauses 3.1.1 and 4.4.2; InfiniBand annex A17 (RoCEv2).
inline constexpr Framing kRoceFraming{.payload = 4096, .header = 82};

/// InfiniBand: each input port has a buffer per virtual lane; a transmitter sends only what the
/// buffer at the other end has room for, and learns of freed room one cable latency after the
/// packet has left that buffer. A free transmitter takes one packet of a lane with packets and
/// credit, lanes in turn, and within the lane input ports in turn (at the source: flows in turn).
struct CreditControl {
  Framing framing = kInfinibandFraming;
  int lanes = 1;  ///< at most 15, as data lanes in the specification
  /// Per input port and lane. At most 2,048 blocks of 64 bytes may be outstanding: InfiniBand
  /// Architecture Specification 1.4, volume 1, section 7.9.4; vendors do not publish theirs.
  std::uint32_t buffer = 131072;
  /// True: within an input buffer each output has a queue of its own, so that a packet waits only
  /// for its own output and for room. False: one queue, so that its first packet blocks the others.
  bool virtual_output_queues = true;
};

/// Ethernet: one first-in-first-out queue per output port and priority; priority flow control
/// pauses the transmitter at the other end of an input whose packets fill more than `xoff`;
/// explicit congestion marks at the output feed DCQCN at the source.
struct EthernetControl {
  Framing framing = kRoceFraming;
  int lanes = 1;  ///< lossless priorities, at most 8
  bool pause = true;
  std::uint32_t xoff = 0;          ///< bytes of one input and priority that bring about a pause
  std::uint32_t xon = 0;           ///< and the bytes at which it ends; below xoff
  bool congestion_control = true;  /// false: sources always send at line rate
  EcnMarking marking;
  DcqcnConstants dcqcn;
  std::uint64_t seed = 1;  ///< of the marks
};

/// Ethernet for links of this rate, with vendor_tuning(). Pauses begin at twice K_max, so that
/// marking comes first (as section 4 of the DCQCN paper demands; the factor is assumed), and end
/// two packets lower.
EthernetControl ethernet_for(BytesPerSecond line_rate);

/// The most that an input can hold above `xoff`: what is on its way until the pause takes hold.
/// Source: Zhu et al. 2015, SIGCOMM, section 4 (t_flight), with this model's delays: a cable each
/// way, forwarding, the pause frame, one packet begun just before the pause and one just counted.
std::uint64_t pause_headroom(const PacketNetwork& network, LinkIndex link,
                             const EthernetControl& control);

struct PacketFlowResult {
  StepTime finish;              ///< the last byte is in the destination's memory
  std::uint64_t delivered = 0;  ///< message bytes
  std::uint32_t packets = 0;
  std::uint32_t overtaken = 0;      ///< packets that arrived after a later one; only if sprayed
  std::uint32_t disorder = 0;       ///< likewise within one path: always 0
  std::uint32_t notifications = 0;  ///< CNPs that the source received
};
struct PacketLinkResult {
  std::uint64_t carried = 0;    ///< bytes, headers included
  std::uint64_t input_max = 0;  ///< the most of one lane's bytes in the input buffer at its end
  std::uint32_t pauses = 0;     ///< how often its transmitter was told to pause
  StepTime paused;              ///< how long it was paused in all, lanes added up
};
struct PacketResult {
  std::vector<PacketFlowResult> flows;
  std::vector<PacketLinkResult> links;
  std::uint64_t packet_hops = 0;  ///< transmissions
  std::uint64_t events = 0;
  /// Packets wait for each other in a circle: flows that never end have finish 0.
  bool deadlock = false;
};

/// Runs all flows to their end. The same answer on every machine. Requires a network without
/// mistake(), lanes below `lanes`, and a buffer of at least one packet.
PacketResult simulate(const PacketNetwork& network, const CreditControl& control);
PacketResult simulate(const PacketNetwork& network, const EthernetControl& control);

}  // namespace lockstep
