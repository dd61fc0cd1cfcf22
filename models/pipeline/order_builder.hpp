/// Writes an order down pass by pass, counting the micro batches of each chunk.
#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "models/pipeline/schedule.hpp"

namespace lockstep {

/// Of a rank of up to two chunks.
class OrderBuilder {
 public:
  explicit OrderBuilder(std::size_t passes) { order_.reserve(passes); }

  /// The next micro batch of a chunk.
  void forward(int chunk, bool pairs = false) {
    order_.push_back({Pass::forward, pairs, chunk_number(chunk), next(forwards_, chunk)});
  }
  void backward(int chunk) {
    order_.push_back({Pass::backward, false, chunk_number(chunk), next(backwards_, chunk)});
  }
  /// Its weights' gradients wait until weight() or weight(chunk) asks for them.
  void input(int chunk) {
    const WorkItem item{Pass::backward_input, false, chunk_number(chunk), next(backwards_, chunk)};
    order_.push_back(item);
    waiting_.push_back({Pass::backward_weight, false, item.chunk, item.micro_batch});
  }
  /// The weights' gradients that have waited longest.
  void weight() { take(0); }
  /// The weight gradients of this chunk that have waited longest.
  void weight(int chunk) {
    std::size_t i = first_;
    while (waiting_[i].chunk != chunk) ++i;
    take(i - first_);
  }
  /// Micro batches so far.
  [[nodiscard]] int forwards(int chunk) const { return at(forwards_, chunk); }
  [[nodiscard]] int backwards(int chunk) const { return at(backwards_, chunk); }
  [[nodiscard]] std::size_t waiting() const { return waiting_.size() - first_; }

  std::vector<WorkItem> take_order() {
    assert(waiting() == 0);
    return std::move(order_);
  }

 private:
  using Counts = std::array<int, 2>;
  static std::uint16_t chunk_number(int chunk) { return static_cast<std::uint16_t>(chunk); }
  static int at(const Counts& counts, int chunk) { return counts[static_cast<std::size_t>(chunk)]; }
  static std::uint32_t next(Counts& counts, int chunk) {
    return static_cast<std::uint32_t>(counts[static_cast<std::size_t>(chunk)]++);
  }
  void take(std::size_t place) {
    const auto from = waiting_.begin() + static_cast<std::ptrdiff_t>(first_);
    const auto it = from + static_cast<std::ptrdiff_t>(place);
    order_.push_back(*it);
    std::move_backward(from, it, it + 1);
    ++first_;
  }

  std::vector<WorkItem> order_;
  std::vector<WorkItem> waiting_;
  std::size_t first_ = 0;  ///< of those that still wait
  Counts forwards_{}, backwards_{};
};

}  // namespace lockstep
