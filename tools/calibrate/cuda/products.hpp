/// Matrix products by cuBLASLt.
#pragma once

#include <memory>

#include "tools/calibrate/cuda/bench.hpp"

namespace lockstep {

/// A product again and again on the same operands, as work that goes on beside something else.
class ProductLoop {
 public:
  /// Takes memory of the current device. Throws TaskFailed where cuBLASLt has no algorithm.
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

  /// Times the product by the algorithm that cuBLASLt's heuristic puts first, operands lying as in
  /// training (16 bit; 8-bit operands always as in a forward pass, the only way there is on
  /// Hopper), and checks elements of its result. Results are 16 bit, sums 32 bit; 8-bit products
  /// add up quickly in forward passes and precisely in gradients, as mixed-precision recipes do.
  Samples measure(const ProductTask& task, const Pace& pace);

 private:
  struct State;
  Bench& bench_;
  std::unique_ptr<State> state_;
};

}  // namespace lockstep
