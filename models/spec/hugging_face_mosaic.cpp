// MosaicML's decoders. Sources: modeling_mpt.py and modeling_dbrx.py in
// https://github.com/huggingface/transformers.
#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "models/spec/hugging_face_parts.hpp"

namespace lockstep::hugging_face {
namespace {

constexpr std::array<std::string_view, 2> kMosaic{"mpt", "dbrx"};

void read_mpt(const JsonCursor& config, const std::optional<JsonCursor>& attention,
              TransformerShape& m) {
  constexpr int kWider = 4, kMostTimes = 64;
  m.ffn = m.hidden * integer_or(config, "expansion_ratio", 1, kMostTimes, kWider);
  m.tied = flag_or(config, "tie_word_embeddings", true);
  m.biases = !flag_or(config, "no_bias", true);
  if (!attention) return;
  const std::optional<JsonCursor> type = attention->find("attn_type");
  if (type && type->string() == "multiquery_attention") m.kv_heads = 1;
  m.learned_positions = !flag_or(*attention, "alibi", true) && !flag_or(*attention, "rope", false);
  m.rotary = flag_or(*attention, "rope", false);
}

void read_dbrx(const JsonCursor& config, TransformerShape& m) {
  const JsonCursor mlp = config.at("ffn_config");
  m.ffn = mlp.at("ffn_hidden_size").integer(1, kMostWidth);
  m.tied = flag_or(config, "tie_word_embeddings", false);
  m.gated = m.rotary = true;
  m.experts.count = mlp.at("moe_num_experts").integer(1, kMostExperts);
  m.experts.per_token = mlp.at("moe_top_k").integer(1, m.experts.count);
  m.experts.ffn = m.ffn;
}

}  // namespace

std::span<const std::string_view> mosaic_families() { return kMosaic; }

void read_mosaic(const JsonCursor& config, std::string_view type, TransformerShape& m) {
  m.layers = config.at("n_layers").integer(1, kMostLayers);
  m.hidden = config.at("d_model").integer(1, kMostWidth / 64);
  const JsonCursor heads = config.at("n_heads");
  m.heads = heads.integer(1, kMostHeads);
  if (m.hidden % m.heads != 0) {
    heads.fail("a divisor of the width " + std::to_string(m.hidden) + " (d_model)");
  }
  m.head_dim = m.hidden / m.heads;
  m.vocabulary = config.at("vocab_size").integer(1, kMostTokens);
  m.max_positions = integer_or(config, "max_seq_len", 1, kMostTokens, 0);
  std::optional<JsonCursor> attention = config.find("attn_config");
  if (attention && !attention->is_object()) attention.reset();
  m.kv_heads = attention ? integer_or(*attention, "kv_n_heads", 1, m.heads, m.heads) : m.heads;
  if (m.heads % m.kv_heads != 0) {
    attention->at("kv_n_heads").fail("a divisor of " + std::to_string(m.heads) + " (n_heads)");
  }
  if (type == "mpt") {
    read_mpt(config, attention, m);
  } else {
    read_dbrx(config, m);
  }
}

}  // namespace lockstep::hugging_face
