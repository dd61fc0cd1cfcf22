/// Flow level against packet level: the same case in both, message by message.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/packet/packet_control.hpp"
#include "sim/referee/referee_case.hpp"

namespace lockstep {

/// A link layer to run a case on. To add one: one row in referee.cpp.
struct RefereeLayer {
  std::string_view name;  ///< as the command line says it
  std::string_view summary;
  Framing framing;
  /// The congestion control, whose start the flow level takes off links with a queue. Null: none.
  DcqcnTuning (*tuning)(BytesPerSecond line_rate);
  PacketResult (*run)(const PacketNetwork& network, BytesPerSecond line_rate);
};
std::span<const RefereeLayer> referee_layers();

/// When a transfer begins, and when its last byte arrives. Only later rounds begin at another time
/// at each level.
struct RefereeTimes {
  Seconds flow_level_start, packet_level_start;
  Seconds flow_level, packet_level;
  /// Of the time from start to end.
  [[nodiscard]] double error() const {
    return (flow_level - flow_level_start) / (packet_level - packet_level_start) - 1;
  }
};

struct RefereeRow {
  const RefereeCase* of = nullptr;
  const RefereeLayer* layer = nullptr;
  std::vector<RefereeTimes> transfers;  ///< in the order of the case
  std::uint64_t packet_hops = 0;

  [[nodiscard]] Seconds flow_level_end() const;
  [[nodiscard]] Seconds packet_level_end() const;
  [[nodiscard]] double median_error() const;  ///< absolute
  [[nodiscard]] std::size_t worst() const;    ///< transfer with the largest absolute error
};

/// The smallest absolute value that at least this share of them does not exceed (nearest rank).
/// Requires one value, and a share above 0 and at most 1.
double absolute_quantile(std::vector<double> values, double share);
inline double median_absolute(std::vector<double> values) {
  return absolute_quantile(std::move(values), 0.5);
}

/// The case as a packet network: a flow for each message.
PacketNetwork packet_network(const RefereeCase& of);

/// Flow level: max-min shares (FlowNetwork) of what links carry beside headers, over the packets'
/// own paths, evenly where they are sprayed; then, for the last packet, the empty path's latency
/// and its storing and forwarding at each switch. A collective is one flow that loads all links of
/// its messages, and whose progress is what its NICs send on average. With `tuning`, a link where
/// more arrives than it can send while sources are at line rate carries the part of its rate that
/// dcqcn_use() says, and transfers have the weights with which they share it. Ends by transfer.
std::vector<Seconds> flow_level_ends(const PacketNetwork& network,
                                     std::span<const RefereeTransfer> transfers,
                                     const Framing& framing, const DcqcnTuning* tuning);

RefereeRow run_referee(const RefereeCase& of, const RefereeLayer& layer);

}  // namespace lockstep
