/// The ends of running flows by (time, flow): a 4-ary heap that finds a flow and changes its time.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "sim/core/clock.hpp"

namespace lockstep {

class DueHeap {
 public:
  struct Due {
    StepTime at;
    std::uint32_t flow;
    friend constexpr auto operator<=>(const Due&, const Due&) = default;
  };

  /// Makes place for flows 0 to `flows` - 1.
  void fit(std::size_t flows) { position_.resize(flows, kAbsent); }

  [[nodiscard]] bool empty() const { return heap_.empty(); }
  /// The earliest, the lowest flow among equals. Requires !empty().
  [[nodiscard]] const Due& top() const {
    assert(!empty());
    return heap_.front();
  }

  /// Adds the flow, or changes its time.
  void set(std::uint32_t flow, StepTime at) {
    const std::uint32_t position = position_[flow];
    if (position == kAbsent) {
      heap_.push_back({at, flow});
      rise(heap_.size() - 1, {at, flow});
    } else if (at < heap_[position].at) {
      rise(position, {at, flow});
    } else {
      sink(position, {at, flow});
    }
  }

  /// Requires !empty().
  Due pop() {
    const Due first = top();
    const Due last = heap_.back();
    heap_.pop_back();
    position_[first.flow] = kAbsent;
    if (!heap_.empty()) sink(0, last);
    return first;
  }

 private:
  static constexpr std::uint32_t kAbsent = std::numeric_limits<std::uint32_t>::max();
  static constexpr std::size_t kArity = 4;

  void place(std::size_t position, const Due& due) {
    heap_[position] = due;
    position_[due.flow] = static_cast<std::uint32_t>(position);
  }
  void rise(std::size_t position, const Due& due) {
    while (position > 0) {
      const std::size_t parent = (position - 1) / kArity;
      if (heap_[parent] < due) break;
      place(position, heap_[parent]);
      position = parent;
    }
    place(position, due);
  }
  void sink(std::size_t position, const Due& due) {
    for (;;) {
      const std::size_t child = kArity * position + 1;
      if (child >= heap_.size()) break;
      const std::size_t end = std::min(child + kArity, heap_.size());
      std::size_t least = child;
      for (std::size_t c = child + 1; c < end; ++c) {
        if (heap_[c] < heap_[least]) least = c;
      }
      if (due < heap_[least]) break;
      place(position, heap_[least]);
      position = least;
    }
    place(position, due);
  }

  std::vector<Due> heap_;
  std::vector<std::uint32_t> position_;  ///< of each flow in heap_
};

}  // namespace lockstep
