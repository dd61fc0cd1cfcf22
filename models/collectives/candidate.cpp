#include "models/collectives/candidate.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace lockstep {

namespace {

/// How sharply the longer of a ring's bytes and messages takes over. Source: as protocols across
/// nodes do (collectives.cpp); 3 to infinity fit the logs of ALCF Polaris alike.
constexpr double kPaceSharpness = 6;

}  // namespace

Seconds MessagePace::time(Bytes payload) const {
  if (steps <= 0 || each <= Seconds{}) return {};
  const double slices = split > Bytes{} ? std::clamp<double>(payload / split, 1, 2) : 1;
  return steps * slices * each;
}

Seconds CollectiveCandidate::time(Bytes payload) const {
  const Seconds line = latency + payload * per_byte;
  const Seconds messages = pace.time(payload);
  if (messages <= Seconds{}) return line;
  const Seconds longer = std::max(line, messages), shorter = std::min(line, messages);
  return std::pow(1 + std::pow(shorter / longer, kPaceSharpness), 1 / kPaceSharpness) * longer;
}

CollectiveCost smooth_minimum(std::span<const CollectiveCandidate> candidates, Bytes payload,
                              BytesPerSecond nic_payload, double sharpness) {
  assert(!candidates.empty());
  // A byte at least, so that no time is 0 where a preset has no latency.
  const Bytes amount = std::max(payload, Bytes{1});
  const auto time = [amount](const CollectiveCandidate& c) { return c.time(amount); };
  const CollectiveCandidate& fastest = *std::ranges::min_element(candidates, {}, time);
  const Seconds shortest = time(fastest);
  assert(shortest > Seconds{});

  // Relative to the shortest, so that no power overflows.
  double sum = 0;
  for (const CollectiveCandidate& c : candidates) sum += std::pow(shortest / time(c), sharpness);
  const double scale = std::pow(sum, -1 / sharpness);

  Seconds latency;
  SecondsPerByte per_byte;
  for (const CollectiveCandidate& c : candidates) {
    const double weight = std::pow(scale * (shortest / time(c)), sharpness + 1);
    latency += weight * c.latency_at(amount);
    per_byte += weight * c.per_byte;
  }
  if (fastest.network_coefficient > 0) {
    per_byte = std::max(per_byte, per_byte_at(fastest.network_coefficient, nic_payload));
  }
  return {.latency = latency,
          .payload_rate = BytesPerSecond{1 / per_byte.base_units()},
          .nvlink_coefficient = fastest.nvlink_coefficient,
          .network_coefficient = fastest.network_coefficient,
          .algorithm = fastest.algorithm,
          .protocol = fastest.protocol};
}

double bus_factor(CollectiveOp op, int ranks) {
  const double n = ranks;
  switch (op) {
    case CollectiveOp::all_reduce:
      return 2 * (n - 1) / n;
    case CollectiveOp::all_gather:
    case CollectiveOp::reduce_scatter:
    case CollectiveOp::all_to_all:
      return (n - 1) / n;
    case CollectiveOp::broadcast:
    case CollectiveOp::send_receive:
    case CollectiveOp::reduce:
      return 1;
  }
  return 1;
}

double ring_steps(CollectiveOp op, int ranks) {
  const double n = ranks;
  switch (op) {
    case CollectiveOp::all_reduce:
      return 2 * (n - 1);
    case CollectiveOp::all_gather:
    case CollectiveOp::reduce_scatter:
    case CollectiveOp::broadcast:
    case CollectiveOp::reduce:
      return n - 1;
    case CollectiveOp::all_to_all:
    case CollectiveOp::send_receive:
      return 1;
  }
  return 1;
}

}  // namespace lockstep
