/// Fused attention by cuDNN, timed and checked on the card.
#pragma once

#include <memory>
#include <string>

#include "tools/calibrate/cuda/bench.hpp"

namespace lockstep {

class AttentionBench {
 public:
  /// Throws CardUnavailable where cuDNN cannot be loaded or does not take the card.
  explicit AttentionBench(Bench& bench);
  ~AttentionBench();
  AttentionBench(const AttentionBench&) = delete;
  AttentionBench& operator=(const AttentionBench&) = delete;

  [[nodiscard]] std::string version() const;
  /// Times the pass, BF16, by the first engine of cuDNN's heuristic that can be built, and checks
  /// rows of its results. The backward pass takes the statistics that the forward pass writes.
  Samples measure(const AttentionTask& task);

 private:
  struct State;
  Bench& bench_;
  std::unique_ptr<State> state_;
};

}  // namespace lockstep
