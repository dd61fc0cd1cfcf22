/// The event queue of a step: a monotone radix heap. Equal times leave in the order of pushing.
#pragma once

#include <array>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/core/clock.hpp"

namespace lockstep {

/// Something that happens to `subject`; what `kind` and `subject` mean is the simulation's business.
struct Event {
  StepTime at;
  std::uint32_t kind;
  std::uint32_t subject;
};

/// Pending events by time, for a clock that never runs backwards.
///
/// Bucket k holds the events whose time differs from the last popped one in bit k - 1 and in no
/// higher bit; bucket 0 holds those of that very time. When bucket 0 runs dry, the lowest bucket is
/// spread over the buckets below it, which keeps its order. Equal times always share a bucket, so
/// ties are first in, first out without a sequence number. A push costs O(1), a pop at most 64 moves
/// over the life of an event, in practice about as many as there are bits in a typical delay.
/// Source: Ahuja, Mehlhorn, Orlin and Tarjan 1990, J. ACM 37(2), 213-223 (one-level radix heap).
class EventQueue {
 public:
  /// Requires `at` >= the time of the last popped event. Allocates only while the queue grows.
  void push(StepTime at, std::uint32_t kind, std::uint32_t subject) {
    assert(at >= last_ && "an event in the past");
    ++size_;
    if (at < next_ && at != last_) next_ = at;
    put({at, kind, subject});
  }

  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] std::size_t size() const { return size_; }

  /// Time of the next event. Requires !empty(). Looking moves no clock: an earlier event may still
  /// be pushed afterwards.
  [[nodiscard]] StepTime next_time() {
    assert(!empty());
    if (head_ < buckets_[0].size()) return last_;
    if (next_ == kUnknown) next_ = least(buckets_[lowest()]);
    return next_;
  }

  /// Takes out the next event. Requires !empty().
  Event pop() {
    assert(!empty());
    if (head_ == buckets_[0].size()) refill();
    --size_;
    return buckets_[0][head_++];
  }

  /// Back to a new queue at time 0; the memory is kept.
  void clear();

 private:
  // The least time outside bucket 0 is above last_ >= 0, so that 0 can say "not known". A push must
  // not make it known: what it pushes need not be the least.
  static constexpr StepTime kUnknown{};

  void put(const Event& event) {
    const std::uint64_t differs = event.at.ps ^ last_.ps;
    if (differs == 0) {
      buckets_[0].push_back(event);
      return;
    }
    const int top_bit = 63 - std::countl_zero(differs);
    filled_ |= std::uint64_t{1} << top_bit;
    buckets_[static_cast<std::size_t>(top_bit) + 1].push_back(event);
  }
  /// The lowest bucket above 0 that holds anything.
  [[nodiscard]] std::size_t lowest() const {
    return static_cast<std::size_t>(std::countr_zero(filled_)) + 1;
  }
  static StepTime least(const std::vector<Event>& bucket);
  void refill();

  std::array<std::vector<Event>, 65> buckets_;
  std::uint64_t filled_ = 0;  ///< bit k - 1: bucket k is not empty
  std::size_t head_ = 0;      ///< of bucket 0: how many of it are popped
  std::size_t size_ = 0;
  StepTime last_;             ///< of the last popped event
  StepTime next_ = kUnknown;  ///< least time outside bucket 0, where known
};

}  // namespace lockstep
