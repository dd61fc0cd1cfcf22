/// How many parameters a model has, as its authors count them.
#pragma once

#include "models/spec/transformer.hpp"

namespace lockstep {

struct ParameterCounts {
  double total = 0;  ///< embedding and output projection included, prediction modules and a vision
                     ///< tower left out
  /// Of them, those that a token passes through: its experts alone, with embedding and projection.
  double active = 0;
  /// Of modules that predict further tokens, without the embedding and the projection that they
  /// share with the model: DeepSeek-V3 has 671 B and a module of 11.5 B; the 685 B of its files
  /// count the module's copies of both (github:deepseek-ai/DeepSeek-V3:README_WEIGHTS.md).
  double prediction = 0;
  double vision = 0;  ///< of a tower that turns images into tokens
};
ParameterCounts parameter_counts(const TransformerShape& model);

}  // namespace lockstep
