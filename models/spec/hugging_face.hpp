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

/// Reads the families that models/spec/hugging_face.cpp lists (`model_type`), of a file with
/// "text_config" or its like the decoder in it with the towers beside it, and families that nobody
/// listed where their keys suffice, which an assumption says: a gated MLP or experts, plain or
/// latent attention, windows by "layer_types", an index. Encoders of text and images, alone or with
/// a decoder, are read by their families. Throws InputError for others, for keys that say more of a
/// decoder's layers than its family knows, for counts that do not fit together, and for layers in
/// an order that the shape cannot say.
HuggingFaceModel read_hugging_face(const JsonCursor& config, std::string name);

}  // namespace lockstep
