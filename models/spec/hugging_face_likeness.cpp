// Families that nobody has described, whose keys are those of one that is known: the keys decide
// what a layer is, not the name.
#include <algorithm>
#include <array>

#include "models/spec/hugging_face_parts.hpp"

namespace lockstep::hugging_face {
namespace {

using LikeKeys = std::array<std::string_view, 5>;

/// In the order of what they say most of; an empty key is none.
struct LikenessRow {
  LikeKeys needed;  ///< all are there and not null
  LikeKeys read;    ///< further ones that are read with them
  Likeness likeness;
};
constexpr std::array kLikenesses{
    LikenessRow{
        {"linear_attn_config"}, {}, {"kimi_linear", "Kimi Delta Attention as kimi_linear has it"}},
    LikenessRow{{"linear_num_value_heads", "linear_num_key_heads", "linear_key_head_dim",
                 "linear_value_head_dim"},
                {"linear_conv_kernel_dim", "mamba_ssm_dtype"},
                {"qwen3_next", "gated delta nets and output gates as qwen3_next has them"}},
    LikenessRow{{"compress_ratios", "index_topk", "o_groups", "o_lora_rank"},
                {"index_n_heads", "index_head_dim", "hc_mult", "compress_rope_theta"},
                {"deepseek_v4", "compressed keys as deepseek_v4 has them"}},
    LikenessRow{{"index_topk", "index_n_heads", "index_head_dim", "kv_lora_rank"},
                {"indexer_types", "indexer_rope_interleave"},
                {"deepseek_v32", "an index that chooses keys as deepseek_v32 has it"}},
    LikenessRow{{"sparse_attention_config"},
                {},
                {"minimax_m3", "blocks of keys that an index chooses as minimax_m3 has them"}},
};

bool is_set(const JsonCursor& config, std::string_view key) {
  const std::optional<JsonCursor> value = config.find(key);
  return value && !value->is_null();
}

bool has_all(const JsonCursor& config, const LikeKeys& keys) {
  return std::ranges::all_of(
      keys, [&](std::string_view key) { return key.empty() || is_set(config, key); });
}

}  // namespace

const Likeness* likeness_of(const JsonCursor& config) {
  for (const LikenessRow& row : kLikenesses) {
    if (has_all(config, row.needed)) return &row.likeness;
  }
  return nullptr;
}

bool is_read_with(const Likeness* likeness, std::string_view key) {
  const auto has = [&](const LikeKeys& keys) { return std::ranges::find(keys, key) != keys.end(); };
  return std::ranges::any_of(kLikenesses, [&](const LikenessRow& row) {
    return &row.likeness == likeness && (has(row.needed) || has(row.read));
  });
}

}  // namespace lockstep::hugging_face
