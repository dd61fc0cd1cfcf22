/// In which format a checkpoint keeps its weights, as the config.json beside it says.
#pragma once

#include <optional>
#include <string>

#include "models/base/json_cursor.hpp"

namespace lockstep {

/// Formats by the names that scenarios have: "bf16", "fp8", "fp4", "int4".
struct CheckpointFormat {
  std::string weights;  ///< of the products outside of experts; empty: none of these
  std::string experts;
  std::string said;  ///< the method and algorithm, in the file's words
};

/// From "quantization_config", of the file or of its "text_config": Transformers' own methods
/// (fp8, mxfp4, awq, gptq), ModelOpt's "quant_algo", compressed-tensors' first group. Attention
/// that the file leaves out of it ("ignore", "modules_to_not_convert") keeps 16 bits, and with it
/// all that is no expert. Empty where the weights have 16 bits. Throws InputError for bits that
/// decide and are no whole number.
/// Source: github:huggingface/transformers:src/transformers/utils/quantization_config.py,
/// github:neuralmagic/compressed-tensors, github:NVIDIA/TensorRT-Model-Optimizer.
std::optional<CheckpointFormat> checkpoint_format(const JsonCursor& config);

}  // namespace lockstep
