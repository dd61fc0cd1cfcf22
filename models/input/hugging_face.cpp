#include "models/input/hugging_face.hpp"

#include <array>
#include <optional>
#include <utility>

namespace lockstep {
namespace {

// Bounds that no published model leaves.
constexpr int kMostLayers = 10'000;
constexpr int kMostWidth = 1 << 20;
constexpr int kMostHeads = 1 << 16;
constexpr int kMostTokens = 1 << 24;

/// How the families differ in what config.json says, and in what their code fixes.
struct Family {
  std::string_view type;                                   ///< "model_type"
  std::string_view layers, hidden, heads, ffn, positions;  ///< keys
  bool gated, biases, rotary, learned_positions;
  bool tied;  ///< unless "tie_word_embeddings" says otherwise: the default of the code
};
// Sources: the configuration_*.py of each family in https://github.com/huggingface/transformers.
constexpr std::string_view kLayers = "num_hidden_layers";
constexpr std::string_view kHidden = "hidden_size";
constexpr std::string_view kHeads = "num_attention_heads";
constexpr std::string_view kFfn = "intermediate_size";
constexpr std::string_view kPositions = "max_position_embeddings";
constexpr std::array kFamilies{
    Family{"llama", kLayers, kHidden, kHeads, kFfn, kPositions, true, false, true, false, false},
    Family{"mistral", kLayers, kHidden, kHeads, kFfn, kPositions, true, false, true, false, false},
    Family{"qwen2", kLayers, kHidden, kHeads, kFfn, kPositions, true, false, true, false, false},
    Family{"qwen3", kLayers, kHidden, kHeads, kFfn, kPositions, true, false, true, false, false},
    Family{"gpt_neox", kLayers, kHidden, kHeads, kFfn, kPositions, false, true, true, false, false},
    Family{"gemma", kLayers, kHidden, kHeads, kFfn, kPositions, true, false, true, false, true},
    Family{"gemma2", kLayers, kHidden, kHeads, kFfn, kPositions, true, false, true, false, true},
    Family{"gpt2", "n_layer", "n_embd", "n_head", "n_inner", "n_positions", false, true, false,
           true, true},
    Family{"opt", kLayers, kHidden, kHeads, "ffn_dim", kPositions, false, true, false, true, true},
};

const Family& family_of(const JsonCursor& config) {
  std::array<std::string_view, kFamilies.size()> types{};
  for (std::size_t i = 0; i < types.size(); ++i) types[i] = kFamilies[i].type;
  return kFamilies[config.at("model_type").choice(types)];
}

/// The integer, or `otherwise` where the key is missing or null.
int integer_or(const JsonCursor& config, std::string_view key, int high, int otherwise) {
  const std::optional<JsonCursor> value = config.find(key);
  return value && !value->is_null() ? value->integer(1, high) : otherwise;
}

bool flag_or(const JsonCursor& config, std::string_view key, bool otherwise) {
  const std::optional<JsonCursor> value = config.find(key);
  return value && !value->is_null() ? value->boolean() : otherwise;
}

void refuse_experts(const JsonCursor& config) {
  for (const std::string_view key : {"num_local_experts", "num_experts", "n_routed_experts"}) {
    const std::optional<JsonCursor> experts = config.find(key);
    if (experts && !experts->is_null()) experts->fail("a dense model, without this key");
  }
}

/// Attention windows make long sequences cheaper; the shape has none.
void note_window(const JsonCursor& config, std::vector<std::string>& assumptions) {
  const std::optional<JsonCursor> window = config.find("sliding_window");
  if (!window || window->is_null() || !flag_or(config, "use_sliding_window", true)) return;
  assumptions.push_back("attention: over all earlier tokens; the model's sliding window of " +
                        window->found() + " tokens is left out");
}

int head_dim_of(const JsonCursor& config, const TransformerShape& shape, const Family& family) {
  constexpr int kGemmaHead = 256;  // the default of GemmaConfig, whatever hidden / heads is
  const bool gemma = family.type == "gemma" || family.type == "gemma2";
  const int divided = shape.hidden / shape.heads;
  const int head_dim = integer_or(config, "head_dim", kMostWidth, gemma ? kGemmaHead : divided);
  if (head_dim < 1) {
    config.at(family.heads)
        .fail("at most " + std::to_string(shape.hidden) + " (" + std::string(family.hidden) + ")");
  }
  return head_dim;
}

}  // namespace

HuggingFaceModel read_hugging_face(const JsonCursor& config, std::string name) {
  const Family& family = family_of(config);
  refuse_experts(config);
  HuggingFaceModel model;
  TransformerShape& shape = model.shape;
  shape.name = std::move(name);
  shape.layers = config.at(family.layers).integer(1, kMostLayers);
  shape.hidden = config.at(family.hidden).integer(1, kMostWidth);
  shape.heads = config.at(family.heads).integer(1, kMostHeads);
  constexpr int kMistralGroups = 8;  // the default of MistralConfig
  shape.kv_heads = integer_or(config, "num_key_value_heads", kMostHeads,
                              family.type == "mistral" ? kMistralGroups : shape.heads);
  if (shape.heads % shape.kv_heads != 0) {
    const std::optional<JsonCursor> groups = config.find("num_key_value_heads");
    (groups ? *groups : config.at(family.heads))
        .fail("heads that are a multiple of the key-value heads; here " +
              std::to_string(shape.heads) + " and " + std::to_string(shape.kv_heads));
  }
  shape.head_dim = head_dim_of(config, shape, family);
  // GPT-2 leaves n_inner null, which means four times the width.
  shape.ffn = family.type == "gpt2"
                  ? integer_or(config, family.ffn, 4 * kMostWidth, 4 * shape.hidden)
                  : config.at(family.ffn).integer(1, kMostWidth);
  shape.vocabulary = config.at("vocab_size").integer(1, kMostTokens);
  shape.gated = family.gated;
  shape.tied = flag_or(config, "tie_word_embeddings", family.tied);
  shape.rotary = family.rotary;
  shape.biases = family.biases || flag_or(config, "mlp_bias", false);
  shape.learned_positions = family.learned_positions;
  shape.max_positions = integer_or(config, family.positions, kMostTokens, 0);
  if (family.type == "opt") shape.max_positions += 2;  // OPTLearnedPositionalEmbedding's offset
  note_window(config, model.assumptions);
  return model;
}

}  // namespace lockstep
