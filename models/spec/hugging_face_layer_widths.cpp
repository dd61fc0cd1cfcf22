// Widths of decoders, and of layers whose widths are their own.
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>

#include "models/spec/hugging_face_layers.hpp"

namespace lockstep::hugging_face {
namespace {

/// Reads what layers have in common, and those that differ in width.
class LayerSizes : private LayerPart {
 public:
  using LayerPart::LayerPart;

  void read() {
    read_widths();
    layers_.assign(static_cast<std::size_t>(shape_.layers), KindShape{});
    read_blocks();
  }

 private:
  void read_widths() {
    shape_.layers = first_at(config_, {"num_hidden_layers", "num_layers"}, 1, kMostLayers);
    if (type_ == "longcat_flash") shape_.layers *= 2;
    shape_.hidden = config_.at("hidden_size").integer(1, kMostWidth);
    if (!read_defaults()) {
      shape_.heads = config_.at("num_attention_heads").integer(1, kMostHeads);
      shape_.vocabulary = config_.at("vocab_size").integer(1, kMostTokens);
    }
    shape_.gated = true;
    shape_.rotary = true;
    shape_.parallel = flag_or(config_, "use_parallel_residual", false);  // StableLM 2 12B
    shape_.tied =
        flag_or(config_, "tie_word_embeddings", flag_or(config_, "tie_embedding", ties_by_code()));
    shape_.kv_heads = first_or(config_, {"num_key_value_heads", "num_attention_groups"}, 1,
                               kMostHeads, shape_.kv_heads > 0 ? shape_.kv_heads : shape_.heads);
    // Hunyuan's files have its ranks whether it is used or not.
    if (draft_.has("kv_lora_rank") && flag_or(config_, "use_mla", true)) {
      read_latent_attention(config_, shape_);
      if (flag_or(config_, "mla_use_nope", false)) shape_.rotary = false;
    } else {
      const int otherwise =
          shape_.head_dim > 0 ? shape_.head_dim : std::max(1, shape_.hidden / shape_.heads);
      shape_.head_dim = integer_or(config_, "head_dim", 1, kMostWidth, otherwise);
    }
    if (shape_.heads % shape_.kv_heads != 0) {
      config_.at("num_key_value_heads")
          .fail("a divisor of " + std::to_string(shape_.heads) + " (num_attention_heads)");
    }
    shape_.ffn =
        first_or(config_, {"dense_intermediate_size", "intermediate_size", "ffn_hidden_size"}, 1,
                 kMostWidth, first_or(config_, {"moe_intermediate_size"}, 1, kMostWidth, 1));
    if (flag_or(config_, "block_auto_adjust_ff_dim", false)) shape_.ffn = adjusted(shape_.ffn);
    shape_.max_positions = integer_or(config_, "max_position_embeddings", 1, kMostTokens, 0);
    if (draft_.has("share_q_dim")) {  // Step-3: all heads' queries out of one vector
      shape_.low_rank.query_rank = config_.at("share_q_dim").integer(1, kMostWidth);
    }
    if (draft_.has("o_groups")) {
      shape_.low_rank = {.query_rank = config_.at("q_lora_rank").integer(1, kMostWidth),
                         .output_groups = config_.at("o_groups").integer(1, shape_.heads),
                         .output_rank = config_.at("o_lora_rank").integer(1, kMostWidth)};
    }
  }

  /// Families whose code has one table of words for both ends unless a file says otherwise.
  [[nodiscard]] bool ties_by_code() const {
    constexpr std::array<std::string_view, 7> kTied{
        "gemma", "vaultgemma", "lfm2", "ernie4_5", "smollm3", "minicpm", "exaone",
    };
    // Of EXAONE the first; the code of the later ones has two.
    if (type_.starts_with("exaone") && type_ != "exaone") return false;
    // MiniCPM's eyes came with another family's words (Qwen 2's and later ones').
    if (type_.starts_with("minicpmv") || type_.starts_with("minicpmo")) return false;
    return std::ranges::any_of(kTied, [&](std::string_view one) { return type_.starts_with(one); });
  }

  /// Gemma 3's files leave out what its code assumes
  /// (github:huggingface/transformers:src/transformers/models/gemma3/configuration_gemma3.py).
  bool read_defaults() {
    if (!type_.starts_with("gemma3")) return false;
    constexpr int kGemmaHeads = 8, kGroups = 4, kColumns = 256, kWords = 262'208;
    shape_.heads = integer_or(config_, "num_attention_heads", 1, kMostHeads, kGemmaHeads);
    shape_.kv_heads = std::min(kGroups, shape_.heads);
    shape_.head_dim = kColumns;
    shape_.vocabulary = integer_or(config_, "vocab_size", 1, kMostTokens, kWords);
    return true;
  }

  /// Layers without attention, and MLPs of different widths
  /// (https://huggingface.co/nvidia/Llama-3_3-Nemotron-Super-49B-v1/blob/main/modeling_decilm.py).
  void read_blocks() {
    for (KindShape& layer : layers_) {
      layer.latent = shape_.latent.key_value_rank > 0;
      layer.ffn = shape_.ffn;
    }
    // DeciLM's.
    (void)draft_.for_each_layer(
        config_, "num_key_value_heads_per_layer", [&](KindShape& layer, const JsonCursor& groups) {
          layer.kv_heads = groups.integer(1, kMostHeads);
          if (shape_.heads % layer.kv_heads == 0) return;
          groups.fail("a divisor of " + std::to_string(shape_.heads) + " (num_attention_heads)");
        });
    int widest = 0;
    const bool listed = draft_.for_each_layer(
        config_, "block_configs", [&](KindShape& layer, const JsonCursor& block) {
          const JsonCursor attention = block.at("attention"), mlp = block.at("ffn");
          for (const JsonCursor& part : {attention, mlp}) {
            const std::optional<JsonCursor> linear = part.find("replace_with_linear");
            if (linear && !linear->is_null() && linear->boolean()) {
              linear->fail("false: a layer with a product in place of its block is not known");
            }
          }
          if (flag_or(attention, "no_op", false)) {
            layer.mixer = Mixer::none;
          } else {
            layer.kv_heads =
                shape_.heads / attention.at("n_heads_in_group").integer(1, shape_.heads);
            shape_.kv_heads = layer.kv_heads;
          }
          layer.ffn = flag_or(mlp, "no_op", false) ? 0 : ffn_of(mlp.at("ffn_mult"));
          widest = std::max(widest, layer.ffn);
        });
    if (listed) shape_.ffn = std::max(1, widest);
  }
  /// Two thirds, times a factor, up to whole blocks (LFM2).
  [[nodiscard]] int adjusted(int ffn) const {
    constexpr Interval kFactor{0.01, 64};
    const int block = integer_or(config_, "block_multiple_of", 1, kMostWidth, 256);
    const std::optional<JsonCursor> factor = first_of(config_, {"block_ffn_dim_multiplier"});
    const double width =
        std::floor((factor ? factor->number(kFactor) : 1) * std::floor(2 * ffn / 3));
    return static_cast<int>(std::ceil(width / block)) * block;
  }
  /// Two thirds of the multiple, up to whole blocks of 256.
  [[nodiscard]] int ffn_of(const JsonCursor& multiple) const {
    constexpr Interval kMultiple{0, 64, true};
    constexpr int kBlock = 256;
    const double width = std::floor(2 * multiple.number(kMultiple) * shape_.hidden / 3);
    return static_cast<int>(std::ceil(width / kBlock)) * kBlock;
  }
};

}  // namespace

void read_layer_widths(LayerDraft& draft) { LayerSizes(draft).read(); }

}  // namespace lockstep::hugging_face
