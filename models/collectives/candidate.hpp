/// One way to run a collective, as NCCL's tuner sees it: an algorithm with a protocol is a straight
/// line, time = latency + payload * per_byte, below which a ring whose messages hold their
/// connections up does not fall. Several lines together make the predicted time.
#pragma once

#include <span>
#include <string_view>

#include "models/base/units.hpp"
#include "models/collectives/collectives.hpp"

namespace lockstep {

using SecondsPerByte = Quantity<1, -1, 0, 0>;

/// Time per payload byte of a link at `rate` that carries `coefficient` bytes for each of them.
constexpr SecondsPerByte per_byte_at(double coefficient, BytesPerSecond rate) {
  return SecondsPerByte{coefficient / rate.base_units()};
}

/// What the messages of a ring take however fast its links are: each connection carries them one
/// after the other. Of `steps` each takes `each`; from `split` of payload on NCCL cuts each in two
/// slices, messages of their own, and between 1 and 2 of these the time grows in proportion.
struct MessagePace {
  double steps = 0;
  Seconds each;
  Bytes split;

  [[nodiscard]] Seconds time(Bytes payload) const;
};

struct CollectiveCandidate {
  std::string_view algorithm;
  std::string_view protocol;
  Seconds latency;
  SecondsPerByte per_byte;         ///< of payload
  double nvlink_coefficient = 0;   ///< as in CollectiveCost
  double network_coefficient = 0;  ///< as in CollectiveCost
  MessagePace pace{};              ///< of rings in Simple across nodes; else nothing

  /// The line, or what the messages take, whichever is longer (blended where they are near).
  [[nodiscard]] Seconds time(Bytes payload) const;
  /// Of that, what does not go into the bytes.
  [[nodiscard]] Seconds latency_at(Bytes payload) const {
    return time(payload) - payload * per_byte;
  }
};

/// The smooth minimum of the candidates at this payload, split into a latency and a rate.
///
///     T = (sum_i T_i^-p)^(-1/p),  T_i = latency_at_i(payload) + payload * per_byte_i
///
/// T is homogeneous of degree one in the T_i, so with w_i = (T / T_i)^(p+1) Euler's theorem gives
/// T = sum_i w_i T_i: latency = sum w_i latency_at_i and per_byte = sum w_i per_byte_i are both at
/// least 0 and add up to T exactly. Algorithm, protocol and coefficients are the fastest
/// candidate's. No member sends more than its NIC carries of payload: the rate is capped at
/// nic_payload / network_coefficient.
///
/// Requires at least one candidate, each with T_i > 0; a sharper minimum has a larger `sharpness`
/// p.
CollectiveCost smooth_minimum(std::span<const CollectiveCandidate> candidates, Bytes payload,
                              BytesPerSecond nic_payload, double sharpness);

/// Bytes that cross each edge of the ring (or leave each member) per payload byte: nccl-tests'
/// ratio of busbw to algbw. 2(n-1)/n all-reduce; (n-1)/n all-gather, reduce-scatter, all-to-all;
/// else 1.
double bus_factor(CollectiveOp op, int ranks);

/// Messages that follow each other around the ring: 2(n-1), n-1, n-1; all-to-all and send/receive
/// 1; broadcast and reduce n-1.
double ring_steps(CollectiveOp op, int ranks);

}  // namespace lockstep
