/// What a collective costs: latency, the rate that its algorithm can reach, and what it puts on
/// wires.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "models/base/units.hpp"
#include "models/collectives/exchange_skew.hpp"
#include "models/spec/hardware.hpp"

namespace lockstep {

enum class CollectiveOp : std::uint8_t {
  all_reduce,
  all_gather,
  reduce_scatter,
  all_to_all,
  broadcast,
  send_receive,
  reduce
};

/// A collective call. `payload` is nccl-tests' size: all-gather the gathered buffer, reduce-scatter
/// the input, all-to-all what one rank sends in all, send/receive the message.
struct CollectiveCall {
  CollectiveOp op;
  Bytes payload;
  int ranks = 2;           ///< n, at least 2
  int ranks_per_node = 2;  ///< g: members in each NVLink domain; n = g k
  int nodes = 0;  ///< k; 0: n / g, rounded up. Where members are spread unevenly, g is the least
  /// Of uneven ones the most; 0, or fewer than n / k: that, rounded up, at least g.
  int ranks_per_node_max = 0;
  ExchangeSkew skew{};  ///< of an all-to-all; its payload is then what a member sends on average
};

/// What a member pays. Total time alone on the machine is
///     latency + payload / payload_rate,
/// where payload_rate is that of algorithm, protocol and the member's own NIC; a shared fabric may
/// leave it less than network_coefficient * payload_rate.
struct CollectiveCost {
  Seconds latency;              ///< alpha terms; congestion never changes them
  BytesPerSecond payload_rate;  ///< payload per second when the links are its own
  double nvlink_coefficient;   ///< bytes out of (and into) each member over NVLink per payload byte
  double network_coefficient;  ///< the same through each member's NIC, on average over the nodes
  std::string_view algorithm;  ///< a name of collective_algorithms() (algorithms.hpp)
  std::string_view protocol;   ///< "ll", "ll128", "simple"
  int channels = 0;            ///< that the algorithm's shape has: shape_channels()
};

/// Measured over modelled time of a collective, by a profile of its card:
/// KernelProfile::collective, beside which it is written (models/kernels/kernel_profile.cpp), as a
/// profile holds kernels too.
double measured_ratio(const KernelProfile& profile, const CollectiveCall& call);

/// Chooses algorithm and protocol by lowest predicted time, as NCCL does with no option set, and
/// returns its cost, times the ratio that gpu.profile has for the call, if there is one;
/// choose_collective() of choice.hpp takes options and says why, by the laws alone.
/// `nic` is the line rate that the network gives each member of the group (one direction, above 0);
/// no rate is above what payload gets of it. Requires ranks >= 2, ranks_per_node >= 1, payload >=
/// 0, and regimes of the operation in `gpu`. README.md beside this file has the formulas,
/// algorithms.cpp and the laws' files their sources.
CollectiveCost collective_cost(const CollectiveCall& call, const GpuSpec& gpu,
                               const TransportSpec& transport, NicShare nic);

/// Time of the collective alone on the machine.
Seconds collective_time(const CollectiveCall& call, const GpuSpec& gpu,
                        const TransportSpec& transport, NicShare nic);

/// One row per collective, for listing and for tests over all of them.
struct CollectiveKind {
  CollectiveOp op;
  std::string_view name;
  std::string_view summary;
  std::string_view source;
};
std::span<const CollectiveKind> collective_kinds();

}  // namespace lockstep
