// Families that nobody has described, whose keys are those of one that is known: the keys decide
// what a layer is, not the name.
#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "models/spec/hugging_face_parts.hpp"

namespace lockstep::hugging_face {
namespace {

using namespace std::string_view_literals;
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

/// Parts of the names of keys that say nothing of the size of a layer: how it is trained and run,
/// which words it has, positions, scales and the choice among experts.
constexpr std::array kHarmlessParts{
    // Words, labels, names and versions.
    "token"sv, "label"sv, "architectures"sv, "model_type"sv, "auto_map"sv, "name_or_path"sv,
    "version"sv, "transformers"sv, "unsloth"sv, "task"sv, "prefix"sv, "language"sv,
    // Training.
    "drop"sv, "initializer"sv, "init_"sv, "loss"sv, "aux"sv, "pretrain"sv, "checkpoint"sv, "prun"sv,
    "noise"sv,
    // Running, and generating text.
    "cache"sv, "dtype"sv, "bf16"sv, "fp16"sv, "bfloat16"sv, "fp32"sv, "flash"sv, "attn_impl"sv,
    "return_dict"sv, "output_"sv, "torchscript"sv, "chunk_size_feed"sv, "beam"sv, "penalty"sv,
    "ngram"sv, "num_return"sv, "temperature"sv, "top_p"sv, "typical_p"sv, "do_sample"sv,
    "early_stopping"sv, "_length"sv, "ep_size"sv, "tp_plan"sv, "quantization"sv, "generation"sv,
    // Positions, norms' small numbers, scales and limits.
    "rope"sv, "rotary"sv, "position"sv, "seq_len"sv, "theta"sv, "_eps"sv, "epsilon"sv, "scal"sv,
    "multiplier"sv, "softcap"sv, "limit"sv, "clip"sv, "causal"sv, "is_decoder"sv, "max_window"sv,
    "use_sliding_window"sv,
    // Norms that are small, or told of in a line of their own.
    "rms_norm"sv, "rmsnorm"sv, "qk_norm"sv, "qk_layernorm"sv, "qk_head_dim"sv,
    // Choices among experts, and what is read beside the decoder.
    "router"sv, "topk_prob"sv, "n_group"sv, "topk_group"sv, "expert_group"sv, "renorm"sv,
    "capacity"sv, "vision"sv, "visual"sv, "image"sv, "audio"sv, "video"sv};

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

bool says_something(const JsonCursor& value) {
  if (value.is_null()) return false;
  if (value.is_number()) return value.number({-1e30, 1e30}) != 0;
  if (value.is_string() || value.is_object()) return true;
  if (value.is_array()) return !value.elements(kMostLayers).empty();
  return value.boolean();
}

std::vector<std::string> unread_sizes(const JsonCursor& config) {
  std::vector<std::string> out = config.unread_keys();
  std::erase_if(out, [&](const std::string& key) {
    const auto harmless = [&](std::string_view part) { return key.find(part) != key.npos; };
    if (std::ranges::any_of(kHarmlessParts, harmless)) return true;
    const JsonCursor value = config.at(key);
    return value.is_string() || !says_something(value);
  });
  return out;
}

}  // namespace lockstep::hugging_face
