/// Small packet networks with numbers that one can add up by hand.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sim/packet/packet_control.hpp"

namespace lockstep::test {

constexpr StepTime ns(std::uint64_t n) { return {n * 1000}; }

inline constexpr BytesPerSecond kRate = gigabytes_per_second(1);  // 1 byte a nanosecond
inline constexpr Seconds kCable{100e-9};
inline constexpr Seconds kForward{300e-9};

/// 1,000 bytes of payload and none of header: 1 us a packet at kRate.
inline constexpr Framing kPlain{.payload = 1000, .header = 0};

/// Vertices are numbered by the caller; all forward in kForward but hosts, which take no time.
inline PacketNetwork network_of(std::uint32_t hosts, std::uint32_t switches) {
  PacketNetwork network;
  network.forwarding.assign(hosts, Seconds{});
  network.forwarding.resize(hosts + switches, kForward);
  return network;
}
inline LinkIndex add_link(PacketNetwork& network, std::uint32_t from, std::uint32_t to,
                          BytesPerSecond rate = kRate, Seconds latency = kCable) {
  network.links.push_back({rate, latency, from, to});
  return static_cast<LinkIndex>(network.links.size() - 1);
}

/// `hosts` hosts on one switch. Link h goes up from host h, link hosts + h down to it.
inline PacketNetwork star(std::uint32_t hosts) {
  PacketNetwork network = network_of(hosts, 1);
  for (std::uint32_t h = 0; h < hosts; ++h) add_link(network, h, hosts);
  for (std::uint32_t h = 0; h < hosts; ++h) add_link(network, hosts, h);
  return network;
}
inline void add_message(PacketNetwork& star, std::uint32_t from, std::uint32_t to,
                        std::uint64_t bytes, StepTime start = {}, std::uint8_t lane = 0) {
  const auto hosts = static_cast<std::uint32_t>(star.links.size() / 2);
  star.flows.push_back({{{from, hosts + to}}, bytes, start, lane});
}

inline CreditControl plain_credit(std::uint32_t buffer = 100000) {
  return {.framing = kPlain, .buffer = buffer};
}
/// No marks, pauses at 20 packets.
inline EthernetControl plain_ethernet() {
  EthernetControl control;
  control.framing = kPlain;
  control.xoff = 20000;
  control.xon = 18000;
  control.congestion_control = false;
  return control;
}

/// What every run has to hold: all bytes arrive, once, in order within each path, and each link has
/// carried what its flows put on it.
inline bool conserves(const PacketNetwork& network, const PacketResult& result,
                      const Framing& framing) {
  std::uint64_t sent = 0, carried = 0;
  for (std::size_t f = 0; f < network.flows.size(); ++f) {
    const PacketFlow& flow = network.flows[f];
    const std::uint64_t packets = (flow.bytes + framing.payload - 1) / framing.payload;
    const PacketFlowResult& got = result.flows[f];
    if (got.delivered != flow.bytes || got.packets != packets || got.disorder != 0) return false;
    sent += (flow.bytes + packets * framing.header) * flow.paths.front().size();
  }
  for (const PacketLinkResult& link : result.links) carried += link.carried;
  return sent == carried && !result.deadlock;
}

/// `near` hosts on switch B and `far` hosts on switch A, which a trunk joins to B, all send to one
/// host on B. All links have the same rate.
inline PacketNetwork parking_lot(std::uint32_t near, std::uint32_t far, BytesPerSecond rate,
                                 std::uint64_t bytes) {
  const std::uint32_t hosts = near + far + 1, a = hosts, b = hosts + 1;
  PacketNetwork network = network_of(hosts, 2);
  const LinkIndex down = add_link(network, b, hosts - 1, rate);
  const LinkIndex trunk = add_link(network, a, b, rate);
  for (std::uint32_t h = 0; h < near; ++h) {
    network.flows.push_back({{{add_link(network, h, b, rate), down}}, bytes, {}, 0});
  }
  for (std::uint32_t h = near; h < near + far; ++h) {
    network.flows.push_back({{{add_link(network, h, a, rate), trunk, down}}, bytes, {}, 0});
  }
  return network;
}
/// When the last message has arrived, in seconds.
inline double last_end(const PacketResult& result) {
  StepTime last;
  for (const PacketFlowResult& flow : result.flows) last = std::max(last, flow.finish);
  return to_seconds(last).base_units();
}

}  // namespace lockstep::test
