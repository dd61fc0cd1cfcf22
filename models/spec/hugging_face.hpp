/// The shape of a model from the config.json that Hugging Face repositories carry.
#pragma once

#include <string>
#include <vector>

#include "models/base/json_cursor.hpp"
#include "models/spec/transformer.hpp"

namespace lockstep {

struct HuggingFaceModel {
  TransformerShape shape;
  std::vector<std::string> assumptions;  ///< what the file has and the shape leaves out, in words
};

/// Reads these families (`model_type`): llama, mistral, mixtral, qwen2, qwen2_moe, qwen3,
/// qwen3_moe, deepseek_v2, deepseek_v3, kimi_k2, gpt_oss, llama4 (its text_config), gpt_neox,
/// gemma, gemma2, nemotron_h, gpt2 and opt. Throws InputError for others, for counts that do not
/// fit together, and for layers with experts in an order that the shape cannot say.
HuggingFaceModel read_hugging_face(const JsonCursor& config, std::string name);

}  // namespace lockstep
