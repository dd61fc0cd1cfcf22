/// Flow level against packet level: the same case in both, message by message.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/packet/packet_control.hpp"
#include "sim/packet/referee_case.hpp"

namespace lockstep {

/// How much of a contended link DCQCN with vendor_tuning() keeps busy: the mean of what a port of
/// 400 Gb/s carries of 2, 3, 4 and 8 messages of 100, 80, 60 and 50 MB (0.833, 0.824, 0.808 and
/// 0.762). The referee's own test measures it; none of its cases was used.
constexpr double kDcqcnContendedUse = 0.81;

/// A link layer to run a case on. To add one: one row in referee.cpp.
struct RefereeLayer {
  std::string_view name;  ///< as the command line says it
  std::string_view summary;
  Framing framing;
  /// What the flow level takes off a link that its messages could fill more than once, beside the
  /// headers: the one constant per congestion control. 1: nothing.
  double contended_use;
  PacketResult (*run)(const PacketNetwork& network, BytesPerSecond line_rate);
};
std::span<const RefereeLayer> referee_layers();

/// When the last byte of a message arrives.
struct RefereeTimes {
  Seconds start, flow_level, packet_level;
  /// Of the time from start to end.
  [[nodiscard]] double error() const { return (flow_level - start) / (packet_level - start) - 1; }
};

struct RefereeRow {
  const RefereeCase* of = nullptr;
  const RefereeLayer* layer = nullptr;
  std::vector<RefereeTimes> messages;  ///< in the order of the case
  std::uint64_t packet_hops = 0;

  [[nodiscard]] Seconds flow_level_end() const;
  [[nodiscard]] Seconds packet_level_end() const;
  [[nodiscard]] double median_error() const;  ///< absolute
  [[nodiscard]] std::size_t worst() const;    ///< message with the largest absolute error
};

/// The smallest absolute value that at least this share of them does not exceed (nearest rank).
/// Requires one value, and a share above 0 and at most 1.
double absolute_quantile(std::vector<double> values, double share);
inline double median_absolute(std::vector<double> values) {
  return absolute_quantile(std::move(values), 0.5);
}

/// The case as a packet network: each message's queue pair is its number.
PacketNetwork packet_network(const RefereeCase& of);

/// Flow level: max-min shares (FlowNetwork) of what links carry beside headers, over the packets'
/// own paths, evenly where they are sprayed; then, for the last packet, the empty path's latency
/// and its storing and forwarding at each switch. Ends by message.
std::vector<Seconds> flow_level_ends(const PacketNetwork& network, const Framing& framing,
                                     double contended_use);

RefereeRow run_referee(const RefereeCase& of, const RefereeLayer& layer);

}  // namespace lockstep
