/// The event queue of a step: a monotone radix heap. Equal times leave in the order of pushing.
#pragma once

#include <array>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "sim/core/clock.hpp"

namespace lockstep {

/// Something that happens to `subject`; what `kind` and `subject` mean is the simulation's
/// business.
struct Event {
  StepTime at;
  std::uint32_t kind;
  std::uint32_t subject;
};

/// Pending events by time, for a clock that never runs backwards.
///
/// Times are read as numbers of 11 digits to the base 64. An event waits in the bucket (level,
/// digit) of the highest digit in which it differs from the last popped time; events of that very
/// time wait apart. When those run out, the lowest bucket is spread over the levels below it, which
/// keeps its order. Equal times always share a bucket, so ties are first in, first out without a
/// sequence number. An event moves at most 11 times; in practice by as many levels as lie between
/// the time that events wait and the time between two of them. Source: Ahuja, Mehlhorn, Orlin and
/// Tarjan 1990, J. ACM 37(2), 213-223 (two-level radix heap).
class EventQueue {
 public:
  /// Requires `at` >= the time of the last popped event. Allocates only while the queue grows.
  void push(StepTime at, std::uint32_t kind, std::uint32_t subject) {
    assert(at >= last_ && "an event in the past");
    ++size_;
    put({at, kind, subject});
  }

  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] std::size_t size() const { return size_; }

  /// Time of the next event. Requires !empty(). Looking moves no clock: an earlier event may still
  /// be pushed afterwards.
  [[nodiscard]] StepTime next_time() const {
    assert(!empty());
    return head_ < present_.size() ? last_ : buckets_[lowest()].least;
  }

  /// Takes out the next event. Requires !empty().
  Event pop() {
    assert(!empty());
    --size_;
    if (head_ == present_.size()) return pop_later();
    return present_[head_++];
  }

  /// Back to a new queue at time 0.
  void clear() { *this = EventQueue(); }

 private:
  static constexpr unsigned kDigitBits = 6;
  static constexpr unsigned kDigits = 1U << kDigitBits;
  static constexpr unsigned kLevels = (64 + kDigitBits - 1) / kDigitBits;
  static constexpr std::size_t kChunkEvents = 32;
  static constexpr std::size_t kSlabChunks = 64;

  // Buckets are lists of chunks from one pool. In vectors, each bucket would keep the room for the
  // largest crowd that ever passed through it.
  struct Chunk {
    std::array<Event, kChunkEvents> events;
    Chunk* next;
  };
  struct Bucket {
    Event* end = nullptr;   ///< one past the last event
    Event* room = nullptr;  ///< one past the last chunk
    Chunk* first = nullptr;
    Chunk* last = nullptr;
    StepTime least{std::numeric_limits<std::uint64_t>::max()};
  };

  void put(const Event& event) {
    const std::uint64_t differs = event.at.ps ^ last_.ps;
    if (differs == 0) {
      present_.push_back(event);
      return;
    }
    const unsigned level = (63U - static_cast<unsigned>(std::countl_zero(differs))) / kDigitBits;
    const auto digit = static_cast<unsigned>(event.at.ps >> (level * kDigitBits)) % kDigits;
    Bucket& bucket = buckets_[level * kDigits + digit];
    if (bucket.end == bucket.room) add_chunk(level, digit);
    *bucket.end++ = event;
    if (event.at < bucket.least) bucket.least = event.at;
  }
  /// The lowest bucket that holds anything. Requires one.
  [[nodiscard]] unsigned lowest() const {
    const auto level = static_cast<unsigned>(std::countr_zero(levels_));
    return level * kDigits + static_cast<unsigned>(std::countr_zero(digits_[level]));
  }
  void add_chunk(unsigned level, unsigned digit);
  static void prefetch_after(const Chunk& chunk);
  Event pop_later();

  std::array<Bucket, std::size_t{kLevels} * kDigits> buckets_{};
  std::array<std::uint64_t, kLevels> digits_{};  ///< which buckets of a level hold anything
  std::uint32_t levels_ = 0;                     ///< which levels do
  std::vector<std::unique_ptr<Chunk[]>> slabs_;  ///< kSlabChunks chunks each
  Chunk* free_ = nullptr;                        ///< list of chunks not in use
  std::vector<Event> present_;                   ///< events of time last_
  std::size_t head_ = 0;                         ///< how many of them are popped
  std::size_t size_ = 0;
  StepTime last_;  ///< of the last popped event
};

}  // namespace lockstep
