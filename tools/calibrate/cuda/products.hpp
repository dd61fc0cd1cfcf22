/// Matrix products by cuBLASLt.
#pragma once

#include <cublasLt.h>
#include <memory>

#include "tools/calibrate/cuda/bench.hpp"

// From CUDA 12.8 on.
#if CUBLAS_VERSION >= 120800
#define LOCKSTEP_BLOCK_SCALING
#endif

namespace lockstep {

/// A product again and again on the same operands, as work that goes on beside something else.
class ProductLoop {
 public:
  /// Takes memory of the current device. Throws TaskFailed where there is none, or no algorithm.
  explicit ProductLoop(const ProductTask& task);
  ~ProductLoop();
  ProductLoop(const ProductLoop&) = delete;
  ProductLoop& operator=(const ProductLoop&) = delete;

  void enqueue(const Stream& stream) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

class Products {
 public:
  explicit Products(Bench& bench);
  ~Products();
  Products(const Products&) = delete;
  Products& operator=(const Products&) = delete;

  /// Times the product, or as many in one batched launch as its shape counts, by the first of eight
  /// algorithms of cuBLASLt's heuristic that runs, operands lying as in
  /// training (16 and 32 bit; narrower operands always as in a forward pass, the only way there is
  /// on Hopper and for block-scaled ones), and checks elements of its result. Results are 16 bit
  /// (of TF32 32), sums 32 bit; FP8 products add up quickly in forward passes and precisely in
  /// gradients, as mixed-precision recipes do. Scales of blocks are all one, so that their order
  /// in memory, which cuBLASLt prescribes, does not matter.
  Samples measure(const ProductTask& task, const Pace& pace);

 private:
  struct State;
  Bench& bench_;
  std::unique_ptr<State> state_;
};

}  // namespace lockstep
