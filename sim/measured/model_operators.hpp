/// The operators of a model as a person counts them, and what a simulated step takes for each.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "models/pipeline/layout.hpp"
#include "sim/answer/step_answer.hpp"

namespace lockstep {

enum class ModelOperator : std::uint8_t {
  embedding,
  norm,
  qkv,
  rotary,
  attention,
  projection,
  recurrence,
  router,
  permute,
  experts,
  mlp_up,
  activation,
  mlp_down,
  head,
  loss,
  quantise,
  gradients,
  adapters,
  optimiser,
  other,
};
constexpr std::size_t kModelOperators = static_cast<std::size_t>(ModelOperator::other) + 1;

struct ModelOperatorInfo {
  std::string_view name;   ///< as JSON says it
  std::string_view title;  ///< as a person reads it
};
const ModelOperatorInfo& info(ModelOperator which);

/// Whose work an operation is that a layer, the embedding or the output projection declares
/// ("qkv.input_gradient", "norm_residual"): `other` where none of the rows above is.
ModelOperator operator_of(std::string_view operation);

/// By ModelOperator.
using OperatorSeconds = std::array<double, kModelOperators>;

/// Of a simulated step, by pipeline stage: all of its products, attention, memory-bound kernels and
/// repeated work, and the optimiser. What a stack's level and shared SMs add to kernels is in
/// proportion to their time.
std::vector<OperatorSeconds> predicted_operators(const RunResult& predicted);

}  // namespace lockstep
