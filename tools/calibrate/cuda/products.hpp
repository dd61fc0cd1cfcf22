/// Matrix products by cuBLASLt.
#pragma once

#include <memory>

#include "tools/calibrate/cuda/bench.hpp"

namespace lockstep {

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
