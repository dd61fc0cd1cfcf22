/// FLOPs of PyTorch's products, by the shapes of their tensors.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "models/base/units.hpp"

namespace lockstep {

using TensorShape = std::vector<double>;

/// Of one call, or empty for an operator that is no product or whose shapes do not fit one. Counts
/// as torch/utils/flop_counter.py does: two for a multiply-add, attention without regard to masks,
/// its backward pass five products with the scores made again.
///
/// Known: mm, addmm, bmm, baddbmm, _scaled_mm, _int_mm; convolutions and their backward pass; the
/// kernels under scaled_dot_product_attention (flash, memory-efficient, cuDNN) and theirs.
/// `inputs` has a shape for each argument, empty for those that are no tensor.
std::optional<Flops> operator_flops(std::string_view name, std::span<const TensorShape> inputs,
                                    std::span<const TensorShape> outputs);

}  // namespace lockstep
