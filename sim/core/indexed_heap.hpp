/// A heap of things by (key, index) that finds a thing by its index and changes its key in place.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace lockstep {

/// At most one entry for each index. The least key is on top, the lowest index among equal keys, so
/// that the order in which things come out does not depend on that in which they went in. 4-ary:
/// fewer levels than a binary heap, and the children of a node share a cache line.
template <typename Key>
class IndexedHeap {
 public:
  struct Entry {
    Key key;
    std::uint32_t index;
  };

  /// Makes place for the indices 0 to `count` - 1.
  void fit(std::size_t count) { position_.resize(count, kAbsent); }

  [[nodiscard]] bool empty() const { return heap_.empty(); }
  [[nodiscard]] bool contains(std::uint32_t index) const {
    return index < position_.size() && position_[index] != kAbsent;
  }
  /// Requires !empty().
  [[nodiscard]] const Entry& top() const {
    assert(!empty());
    return heap_.front();
  }

  /// Adds the index, or changes its key.
  void set(std::uint32_t index, Key key) {
    const std::uint32_t position = position_[index];
    if (position == kAbsent) {
      heap_.push_back({key, index});
      rise(heap_.size() - 1, {key, index});
    } else if (key < heap_[position].key) {
      rise(position, {key, index});
    } else {
      sink(position, {key, index});
    }
  }
  /// Adds the index unless it is there with a key as low or lower.
  void lower(std::uint32_t index, Key key) {
    const std::uint32_t position = position_[index];
    if (position == kAbsent || key < heap_[position].key) set(index, key);
  }

  /// Requires !empty().
  Entry pop() {
    const Entry first = top();
    remove(first.index);
    return first;
  }

  /// Takes the index out, wherever it stands. No effect where it is not there.
  void remove(std::uint32_t index) {
    const std::uint32_t position = position_[index];
    if (position == kAbsent) return;
    position_[index] = kAbsent;
    const Entry last = heap_.back();
    heap_.pop_back();
    if (last.index == index) return;
    if (position > 0 && before(last, heap_[(position - 1) / kArity])) {
      rise(position, last);
    } else {
      sink(position, last);
    }
  }

  /// Many indices at once: add() each, none of which may be there yet, then order().
  void add(std::uint32_t index, Key key) {
    assert(position_[index] == kAbsent);
    position_[index] = static_cast<std::uint32_t>(heap_.size());
    heap_.push_back({key, index});
  }
  void order() {
    for (std::size_t i = heap_.size() / kArity + 1; i-- > 0;) {
      if (i < heap_.size()) sink(i, Entry{heap_[i]});
    }
  }

 private:
  static constexpr std::uint32_t kAbsent = std::numeric_limits<std::uint32_t>::max();
  static constexpr std::size_t kArity = 4;

  static bool before(const Entry& a, const Entry& b) {
    return a.key < b.key || (a.key == b.key && a.index < b.index);
  }
  void place(std::size_t position, const Entry& entry) {
    heap_[position] = entry;
    position_[entry.index] = static_cast<std::uint32_t>(position);
  }
  void rise(std::size_t position, const Entry& entry) {
    while (position > 0) {
      const std::size_t parent = (position - 1) / kArity;
      if (before(heap_[parent], entry)) break;
      place(position, heap_[parent]);
      position = parent;
    }
    place(position, entry);
  }
  void sink(std::size_t position, const Entry& entry) {
    for (;;) {
      const std::size_t child = kArity * position + 1;
      if (child >= heap_.size()) break;
      const std::size_t end = std::min(child + kArity, heap_.size());
      std::size_t least = child;
      for (std::size_t c = child + 1; c < end; ++c) {
        if (before(heap_[c], heap_[least])) least = c;
      }
      if (before(entry, heap_[least])) break;
      place(position, heap_[least]);
      position = least;
    }
    place(position, entry);
  }

  std::vector<Entry> heap_;
  std::vector<std::uint32_t> position_;  ///< of each index in heap_
};

}  // namespace lockstep
