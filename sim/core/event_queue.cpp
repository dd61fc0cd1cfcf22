#include "sim/core/event_queue.hpp"

#include <utility>

namespace lockstep {

/// Gives a bucket room for the next event.
void EventQueue::add_chunk(unsigned level, unsigned digit) {
  if (free_ == nullptr) {
    slabs_.push_back(std::make_unique_for_overwrite<Chunk[]>(kSlabChunks));
    for (std::size_t i = 0; i < kSlabChunks; ++i) {
      slabs_.back()[i].next = std::exchange(free_, &slabs_.back()[i]);
    }
  }
  Chunk* chunk = free_;
  free_ = chunk->next;
  chunk->next = nullptr;
  Bucket& bucket = buckets_[level * kDigits + digit];
  if (bucket.first == nullptr) {
    bucket.first = chunk;
    levels_ |= 1U << level;
    digits_[level] |= std::uint64_t{1} << digit;
  } else {
    bucket.last->next = chunk;
  }
  bucket.last = chunk;
  bucket.end = chunk->events.data();
  bucket.room = bucket.end + kChunkEvents;
}

/// Chunks of a large bucket lie anywhere: fetches the one after `chunk` while that is being spread.
void EventQueue::prefetch_after(const Chunk& chunk) {
  constexpr std::size_t kLineEvents = 64 / sizeof(Event);
  if (chunk.next == nullptr) return;
  for (std::size_t i = 0; i < kChunkEvents; i += kLineEvents) {
    __builtin_prefetch(&chunk.next->events[i]);
  }
}

/// Moves the clock to the next event and spreads its bucket, whose events all land on lower levels.
Event EventQueue::pop_later() {
  present_.clear();
  head_ = 0;
  const unsigned index = lowest();
  const unsigned level = index / kDigits;
  digits_[level] &= digits_[level] - 1;
  if (digits_[level] == 0) levels_ &= levels_ - 1;
  const Bucket bucket = std::exchange(buckets_[index], Bucket{});
  last_ = bucket.least;
  Event next{};
  bool found = false;
  for (Chunk* chunk = bucket.first; chunk != nullptr;) {
    const Event* end = chunk == bucket.last ? bucket.end : chunk->events.data() + kChunkEvents;
    prefetch_after(*chunk);
    for (const Event* event = chunk->events.data(); event != end; ++event) {
      if (event->at == last_ && !found) {
        next = *event;
        found = true;
      } else {
        put(*event);
      }
    }
    Chunk* emptied = chunk;
    chunk = chunk->next;
    emptied->next = free_;
    free_ = emptied;
  }
  return next;
}

}  // namespace lockstep
