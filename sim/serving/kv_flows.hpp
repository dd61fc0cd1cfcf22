/// Prompts whose keys and values are on their way: what of each is there to be sent, what has been
/// put on its flow, and which have arrived.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/scenario/failure_mode.hpp"
#include "sim/serving/kv_network.hpp"

namespace lockstep {

/// The network's clock at that nanosecond, and the first nanosecond that is not before an instant
/// of it.
constexpr StepTime to_ticks(RunTime t) { return {static_cast<std::uint64_t>(t) * 1000}; }
constexpr RunTime first_after(StepTime t) { return static_cast<RunTime>((t.ps + 999) / 1000); }

/// A request's keys and values, from their first byte on.
struct KvSending {
  std::uint32_t request = 0;
  KvEnd from, to;  ///< replicas of their pools
  KvChannel channel{};
  double queued = 0;         ///< bytes that the sender has worked out
  double started = 0;        ///< of them, put on the flow
  std::uint32_t serial = 0;  ///< no other sending has it
  bool open = false;         ///< this place is in use
  bool moving = false, whole = false, dropped = false;
  RunTime since = 0;  ///< the prompt was done, with its last byte
};

class KvFlows {
 public:
  explicit KvFlows(KvNetwork& network) : network_(network) {}

  /// Its number until it has arrived and is closed, or is dropped.
  std::int32_t open(std::uint32_t request, const KvEnd& from, const KvEnd& to);
  /// So much of it, from the first byte, may be on its way.
  void push(std::int32_t sending, Bytes of_it, StepTime now);
  /// All of it may, and the prompt is done. Whether it has arrived already: there is nothing to it.
  bool push_whole(std::int32_t sending, Bytes all, StepTime now);
  /// Nobody waits for it any more. What is on the flow goes on to its end.
  void drop(std::int32_t sending);
  /// Arrived, and taken.
  void close(std::int32_t sending) { free(sending); }

  /// Appends those that have arrived.
  void ended(std::span<const FlowIndex> flows, StepTime now, std::vector<std::int32_t>& arrived);

  [[nodiscard]] KvSending& of(std::int32_t sending) {
    return sendings_[static_cast<std::size_t>(sending)];
  }
  /// That are on their flow.
  [[nodiscard]] std::size_t moving() const { return moving_; }
  [[nodiscard]] std::int32_t places() const { return static_cast<std::int32_t>(sendings_.size()); }
  [[nodiscard]] const KvCut& cut(std::size_t pool) const { return network_.cut(pool); }
  [[nodiscard]] FlowNetwork& network() { return network_.network(); }

 private:
  void start(std::int32_t sending, StepTime now);
  void free(std::int32_t sending);

  KvNetwork& network_;
  std::vector<KvSending> sendings_;
  std::vector<std::int32_t> free_;
  std::vector<std::int32_t> of_flow_;
  std::uint32_t serial_ = 0;
  std::size_t moving_ = 0;
};

}  // namespace lockstep
