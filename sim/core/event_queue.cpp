#include "sim/core/event_queue.hpp"

#include <algorithm>

namespace lockstep {

StepTime EventQueue::least(const std::vector<Event>& bucket) {
  StepTime least = bucket.front().at;
  for (const Event& event : bucket) least = std::min(least, event.at);
  return least;
}

/// Moves the clock to the next event and spreads its bucket, whose events all land further down.
void EventQueue::refill() {
  buckets_[0].clear();
  head_ = 0;
  const std::size_t from = lowest();
  std::vector<Event>& bucket = buckets_[from];
  last_ = next_ == kUnknown ? least(bucket) : next_;
  next_ = kUnknown;
  filled_ &= filled_ - 1;
  for (const Event& event : bucket) put(event);
  bucket.clear();
}

void EventQueue::clear() {
  for (std::vector<Event>& bucket : buckets_) bucket.clear();
  filled_ = 0;
  head_ = 0;
  size_ = 0;
  last_ = {};
  next_ = kUnknown;
}

}  // namespace lockstep
