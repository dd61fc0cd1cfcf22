/// The shape of a model from the config.json that Hugging Face repositories carry.
#pragma once

#include <string>
#include <vector>

#include "models/input/json_cursor.hpp"
#include "models/transformer.hpp"

namespace lockstep {

struct HuggingFaceModel {
  TransformerShape shape;
  std::vector<std::string> assumptions;  ///< what the file has and the shape leaves out, in words
};

/// Reads llama, mistral, qwen2, qwen3, gpt_neox, gemma, gemma2, gpt2 and opt (`model_type`). Throws
/// InputError for other types, for mixtures of experts, and for counts that do not fit together.
HuggingFaceModel read_hugging_face(const JsonCursor& config, std::string name);

}  // namespace lockstep
