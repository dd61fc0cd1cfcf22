#include "models/spec/hugging_face.hpp"

#include <array>
#include <optional>
#include <utility>

#include "models/spec/hugging_face_parts.hpp"

namespace lockstep {
namespace hugging_face {

int integer_or(const JsonCursor& config, std::string_view key, int low, int high, int otherwise) {
  const std::optional<JsonCursor> value = config.find(key);
  return value && !value->is_null() ? value->integer(low, high) : otherwise;
}

bool flag_or(const JsonCursor& config, std::string_view key, bool otherwise) {
  const std::optional<JsonCursor> value = config.find(key);
  return value && !value->is_null() ? value->boolean() : otherwise;
}

namespace {

/// How the families differ in what config.json says, and in what their code fixes.
struct Family {
  std::string_view type;                                   ///< "model_type"
  std::string_view layers, hidden, heads, ffn, positions;  ///< keys
  bool gated, biases, rotary, learned_positions;
  bool tied;     ///< unless "tie_word_embeddings" says otherwise: the default of the code
  int kv_heads;  ///< unless "num_key_value_heads" says; 0: as many as heads
  int head_dim;  ///< unless "head_dim" says; 0: width over heads
};
// Sources: the configuration_*.py of each family in https://github.com/huggingface/transformers.
constexpr std::string_view kLayers = "num_hidden_layers";
constexpr std::string_view kHidden = "hidden_size";
constexpr std::string_view kHeads = "num_attention_heads";
constexpr std::string_view kFfn = "intermediate_size";
constexpr std::string_view kPositions = "max_position_embeddings";
constexpr std::string_view kDenseFfn = "intermediate_size_mlp";
constexpr Family llama_like(std::string_view type, std::string_view ffn = kFfn) {
  return {type, kLayers, kHidden, kHeads, ffn, kPositions, true, false, true, false, false, 0, 0};
}
constexpr Family with(Family family, int kv_heads, int head_dim, bool tied = false) {
  family.kv_heads = kv_heads;
  family.head_dim = head_dim;
  family.tied = tied;
  return family;
}
constexpr Family with_biases(Family family) {
  family.biases = true;
  return family;
}
constexpr std::array kFamilies{
    llama_like("llama"),
    with(llama_like("mistral"), 8, 0),
    with(llama_like("mixtral"), 8, 0),
    llama_like("qwen2"),
    llama_like("qwen2_moe"),
    with(llama_like("qwen3"), 0, 128),
    with(llama_like("qwen3_moe"), 4, 0),
    llama_like("deepseek_v2"),
    llama_like("deepseek_v3"),
    llama_like("kimi_k2"),
    with_biases(with(llama_like("gpt_oss"), 8, 64)),
    with(llama_like("llama4", kDenseFfn), 8, 128),
    with(llama_like("llama4_text", kDenseFfn), 8, 128),
    Family{"gpt_neox", kLayers, kHidden, kHeads, kFfn, kPositions, false, true, true, false, false,
           0, 0},
    with(llama_like("gemma"), 0, 256, true),
    with(llama_like("gemma2"), 0, 256, true),
    Family{"nemotron_h", kLayers, kHidden, kHeads, kFfn, kPositions, false, false, false, false,
           false, 8, 128},
    Family{"jamba", kLayers, kHidden, kHeads, kFfn, kPositions, true, false, false, false, false, 8,
           0},
    Family{"gpt2", "n_layer", "n_embd", "n_head", "n_inner", "n_positions", false, true, false,
           true, true, 0, 0},
    Family{"opt", kLayers, kHidden, kHeads, "ffn_dim", kPositions, false, true, false, true, true,
           0, 0},
};

const Family& family_of(const JsonCursor& config) {
  std::array<std::string_view, kFamilies.size()> types{};
  for (std::size_t i = 0; i < types.size(); ++i) types[i] = kFamilies[i].type;
  return kFamilies[config.at("model_type").choice(types)];
}

void refuse_experts(const JsonCursor& config) {
  for (const std::string_view key : {"num_local_experts", "num_experts", "n_routed_experts"}) {
    const std::optional<JsonCursor> experts = config.find(key);
    if (experts && !experts->is_null()) experts->fail("a dense model, without this key");
  }
}

void read_heads(const JsonCursor& config, const Family& family, TransformerShape& shape) {
  shape.heads = config.at(family.heads).integer(1, kMostHeads);
  if (has_latent_attention(family.type)) {
    read_latent_attention(config, shape);
    return;
  }
  shape.kv_heads = integer_or(config, "num_key_value_heads", 1, kMostHeads,
                              family.kv_heads > 0 ? family.kv_heads : shape.heads);
  if (shape.heads % shape.kv_heads != 0) {
    const std::optional<JsonCursor> groups = config.find("num_key_value_heads");
    (groups ? *groups : config.at(family.heads))
        .fail("heads that are a multiple of the key-value heads; here " +
              std::to_string(shape.heads) + " and " + std::to_string(shape.kv_heads));
  }
  const int otherwise = family.head_dim > 0 ? family.head_dim : shape.hidden / shape.heads;
  shape.head_dim = integer_or(config, "head_dim", 1, kMostWidth, otherwise);
  if (shape.head_dim < 1) {
    config.at(family.heads)
        .fail("at most " + std::to_string(shape.hidden) + " (" + std::string(family.hidden) + ")");
  }
}

HuggingFaceModel read_model(const JsonCursor& config, const Family& family, std::string name) {
  const bool sparse = has_experts(family.type), hybrid = is_hybrid(family.type);
  if (!sparse && !hybrid) refuse_experts(config);
  HuggingFaceModel model;
  TransformerShape& shape = model.shape;
  shape.name = std::move(name);
  shape.layers = config.at(family.layers).integer(1, kMostLayers);
  shape.hidden = config.at(family.hidden).integer(1, kMostWidth);
  read_heads(config, family, shape);
  // GPT-2 leaves n_inner null, which means four times the width.
  shape.ffn = family.type == "gpt2"
                  ? integer_or(config, family.ffn, 1, 4 * kMostWidth, 4 * shape.hidden)
                  : config.at(family.ffn).integer(1, kMostWidth);
  shape.vocabulary = config.at("vocab_size").integer(1, kMostTokens);
  shape.gated = family.gated;
  shape.tied = flag_or(config, "tie_word_embeddings", family.tied);
  shape.rotary = family.rotary;
  shape.biases = family.biases || flag_or(config, "mlp_bias", false);
  shape.learned_positions = family.learned_positions;
  shape.max_positions = integer_or(config, family.positions, 1, kMostTokens, 0);
  if (family.type == "opt") shape.max_positions += 2;  // OPTLearnedPositionalEmbedding's offset
  if (sparse) shape.experts = read_experts(config, family.type, shape.layers);
  if (hybrid) read_hybrid(config, family.type, shape);
  constexpr int kMostPredicted = 64;
  shape.predicted_tokens = integer_or(config, "num_nextn_predict_layers", 0, kMostPredicted, 0);
  read_window(config, family.type, shape, model.assumptions);
  return model;
}

}  // namespace
}  // namespace hugging_face

HuggingFaceModel read_hugging_face(const JsonCursor& config, std::string name) {
  const hugging_face::Family& family = hugging_face::family_of(config);
  if (family.type != "llama4") return hugging_face::read_model(config, family, std::move(name));
  HuggingFaceModel model =
      hugging_face::read_model(config.at("text_config"), family, std::move(name));
  model.assumptions.emplace_back("model: its language part; what it sees with is left out");
  return model;
}

}  // namespace lockstep
