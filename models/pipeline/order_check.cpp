#include "models/pipeline/order_check.hpp"

#include <cassert>
#include <cstdint>

namespace lockstep {
namespace {

/// What one rank has done of each chunk.
class RankCheck {
 public:
  RankCheck(const PipelineShape& shape, int micro_batches, int rank)
      : shape_(shape),
        rank_(rank),
        batches_(static_cast<std::size_t>(shape.micro_batches(micro_batches))),
        next_forward_(static_cast<std::size_t>(shape.chunks)),
        next_backward_(next_forward_),
        waits_(next_forward_.size() * batches_) {}

  [[nodiscard]] std::optional<OrderProblem> run(std::span<const WorkItem> order) {
    for (std::size_t i = 0; i < order.size(); ++i) {
      std::string rule = add(order[i]);
      if (rule.empty() && order[i].pairs &&
          (i + 1 == order.size() || is_forward(order[i + 1].pass) ||
           order[i + 1].pass == Pass::backward_weight)) {
        rule = "a backward pass behind the forward pass of a pair";
      }
      if (!rule.empty()) return OrderProblem{rank_, i, rule};
    }
    std::string rule = missing();
    if (rule.empty()) return std::nullopt;
    return OrderProblem{rank_, order.size(), rule};
  }

 private:
  /// Returns the rule that the item breaks.
  std::string add(const WorkItem& item) {
    const std::size_t c = item.chunk;
    if (c >= next_forward_.size()) return "chunks 0 to " + std::to_string(shape_.chunks - 1);
    if (item.micro_batch >= batches_) {
      return "micro batches 0 to " + std::to_string(batches_ - 1) + " of a chunk";
    }
    if (is_forward(item.pass)) {
      if (item.micro_batch != next_forward_[c]) {
        return next_text("F", next_forward_[c], c) + "forward passes of a chunk in rising order";
      }
      ++next_forward_[c];
      return {};
    }
    char& waits = waits_[c * batches_ + item.micro_batch];
    if (item.pass == Pass::backward_weight) {
      if (waits == 0) return "gradients of weights once, behind those of inputs";
      waits = 0;
      return {};
    }
    if (item.micro_batch != next_backward_[c]) {
      return next_text("B", next_backward_[c], c) + "backward passes of a chunk in rising order";
    }
    if (item.micro_batch >= next_forward_[c]) return "a forward pass before its backward pass";
    ++next_backward_[c];
    waits = item.pass == Pass::backward_input ? 1 : 0;
    return {};
  }

  [[nodiscard]] std::string next_text(const char* pass, std::uint32_t number,
                                      std::size_t chunk) const {
    if (number == batches_) return "every pass once, ";
    return pass + std::to_string(number) + (chunk > 0 ? "@" + std::to_string(chunk) : "") + ", ";
  }

  [[nodiscard]] std::string missing() const {
    for (std::size_t c = 0; c < next_forward_.size(); ++c) {
      if (next_forward_[c] < batches_) return next_text("F", next_forward_[c], c) + kAll;
      if (next_backward_[c] < batches_) return next_text("B", next_backward_[c], c) + kAll;
      for (std::size_t i = 0; i < batches_; ++i) {
        if (waits_[c * batches_ + i] == 0) continue;
        return next_text("W", static_cast<std::uint32_t>(i), c) + kAll;
      }
    }
    return {};
  }

  static constexpr const char* kAll = "every pass of every chunk and micro batch";

  const PipelineShape& shape_;
  int rank_;
  std::size_t batches_;
  std::vector<std::uint32_t> next_forward_, next_backward_;
  std::vector<char> waits_;  ///< by chunk and micro batch: weights' gradients are to come
};

/// Runs all ranks as far as they come, with passes that take no time.
class DeadlockCheck {
 public:
  DeadlockCheck(const PipelineShape& shape, std::span<const std::vector<WorkItem>> ranks)
      : shape_(shape),
        ranks_(ranks),
        next_(ranks.size()),
        done_(2 * ranks.size() * static_cast<std::size_t>(shape.chunks)) {}

  [[nodiscard]] std::optional<OrderProblem> run() {
    bool moved = true;
    while (moved) {
      moved = false;
      for (std::size_t r = 0; r < ranks_.size(); ++r) moved = advance(r) || moved;
    }
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      if (next_[r] == ranks_[r].size()) continue;
      return OrderProblem{static_cast<int>(r), next_[r],
                          "orders that come to an end: this pass waits for ever for its neighbour"};
    }
    return std::nullopt;
  }

 private:
  [[nodiscard]] std::uint32_t& done(ChunkPlace at, bool forward) {
    return done_[2 * static_cast<std::size_t>(at.rank * shape_.chunks + at.chunk) +
                 (forward ? 1 : 0)];
  }
  [[nodiscard]] bool ready(std::size_t rank, const WorkItem& item) {
    if (item.pass == Pass::backward_weight) return true;
    const ChunkPlace at{static_cast<int>(rank), item.chunk};
    const bool forward = is_forward(item.pass);
    const auto from = forward ? shape_.before(at) : shape_.after(at);
    return !from || done(*from, forward) > item.micro_batch;
  }
  bool advance(std::size_t rank) {
    const auto& order = ranks_[rank];
    const std::size_t first = next_[rank];
    while (next_[rank] < order.size()) {
      const std::size_t i = next_[rank];
      const std::size_t end = i + (order[i].pairs ? 2 : 1);
      for (std::size_t j = i; j < end; ++j) {
        if (!ready(rank, order[j])) return i > first;
      }
      for (std::size_t j = i; j < end; ++j) {
        if (order[j].pass == Pass::backward_weight) continue;
        ++done({static_cast<int>(rank), order[j].chunk}, is_forward(order[j].pass));
      }
      next_[rank] = end;
    }
    return next_[rank] > first;
  }

  const PipelineShape& shape_;
  std::span<const std::vector<WorkItem>> ranks_;
  std::vector<std::size_t> next_;
  std::vector<std::uint32_t>
      done_;  ///< by rank, chunk and direction: micro batches that are through
};

}  // namespace

std::optional<OrderProblem> check_orders(const PipelineShape& shape, int micro_batches,
                                         std::span<const std::vector<WorkItem>> ranks) {
  assert(static_cast<std::size_t>(shape.ranks) == ranks.size());
  for (int r = 0; r < shape.ranks; ++r) {
    RankCheck check(shape, micro_batches, r);
    if (auto problem = check.run(ranks[static_cast<std::size_t>(r)])) return problem;
  }
  return DeadlockCheck(shape, ranks).run();
}

std::string pass_text(const WorkItem& item) {
  const char* name = is_forward(item.pass) ? "F" : item.pass == Pass::backward_weight ? "W" : "B";
  return name + std::to_string(item.micro_batch) +
         (item.chunk > 0 ? "@" + std::to_string(item.chunk) : "");
}

}  // namespace lockstep
