// What attention sees in each layer of a decoder: windows, indices, compressed and shared keys.
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "models/spec/hugging_face_layers.hpp"

namespace lockstep::hugging_face {
namespace {

/// Reads what the attention of each layer goes over, and what stands around it.
class LayerReach : private LayerPart {
 public:
  using LayerPart::LayerPart;

  void read() {
    read_windows();
    read_choices();
    read_gates();
    read_directions();
    read_shared_keys();
  }

 private:
  void read_windows() {
    // -1: none (Grok 2).
    const int window = std::max(
        0, first_or(config_, {"sliding_window", "sliding_window_size"}, -1, kMostTokens, 0));
    if (draft_.has("compress_ratios")) return read_compression(window);
    constexpr std::array<std::string_view, 2> kTypes{"full_attention", "sliding_attention"};
    const auto slide = [&](KindShape& layer, bool slides) {
      if (slides) {
        make_sliding(layer, window);
      } else {
        make_global(layer);
      }
    };
    if (draft_.for_each_layer(
            config_, "hybrid_layer_pattern",
            [&](KindShape& layer, const JsonCursor& at) { slide(layer, at.integer(0, 1) == 1); })) {
      require_window(window);
    } else if (window > 0 && ((shape_.delta.key_heads == 0 &&
                               draft_.for_each_layer(config_, "layer_types",
                                                     [&](KindShape& layer, const JsonCursor& at) {
                                                       slide(layer, at.choice(kTypes) == 1);
                                                     })) ||
                              read_sliding_pattern(slide))) {
      return;
    } else if (window > 0 && flag_or(config_, "use_sliding_window", true)) {
      config_.at("sliding_window").fail("layer_types beside it, which say which layers have it");
    }
    if (draft_.has("v_head_dim") && shape_.latent.key_value_rank == 0) {
      const int value = config_.at("v_head_dim").integer(1, kMostWidth);
      for (KindShape& layer : layers_) {
        if (layer.value_dim == 0) layer.value_dim = value;
      }
    }
  }
  /// Every n-th layer attends to all, or a letter says it of each of so many: L for a window
  /// (EXAONE 4).
  template <class Slide>
  bool read_sliding_pattern(const Slide& slide) {
    constexpr int kGemma = 6;
    const std::optional<JsonCursor> pattern = first_of(config_, {"sliding_window_pattern"});
    if (!pattern && !type_.starts_with("gemma3")) return false;
    if (pattern && pattern->is_string()) {
      const std::string letters = pattern->string();
      if (letters.empty() || letters.find_first_not_of("LG") != std::string::npos) {
        pattern->fail("letters L (a window) and G (all tokens), or a number");
      }
      for (std::size_t i = 0; i < layers_.size(); ++i) {
        slide(layers_[i], letters[i % letters.size()] == 'L');
      }
      return true;
    }
    const auto every =
        static_cast<std::size_t>(pattern ? pattern->integer(1, kMostLayers) : kGemma);
    for (std::size_t i = 0; i < layers_.size(); ++i) slide(layers_[i], (i + 1) % every != 0);
    return true;
  }
  void require_window(int window) const {
    if (window == 0) (void)config_.at("sliding_window");
  }
  void make_sliding(KindShape& layer, int window) {
    layer.window = window;
    layer.heads = first_or(config_, {"swa_num_attention_heads"}, 1, kMostHeads, 0);
    layer.kv_heads = first_or(config_, {"swa_num_key_value_heads"}, 1, kMostHeads, 0);
    layer.head_dim = first_or(config_, {"swa_head_dim"}, 1, kMostWidth, 0);
    layer.value_dim = first_or(config_, {"swa_v_head_dim"}, 1, kMostWidth, 0);
  }
  void make_global(KindShape& layer) {
    layer.head_dim = first_or(config_, {"global_head_dim"}, 1, kMostWidth, 0);
    layer.kv_heads = first_or(config_, {"num_global_key_value_heads"}, 1, kMostHeads, 0);
    layer.one_projection = flag_or(config_, "attention_k_eq_v", false);
  }

  /// 0: a window alone; 4: entries that an index chooses from; others: all entries.
  void read_compression(int window) {
    require_window(window);
    constexpr int kChosenFrom = 4;
    constexpr int kMostRatio = 1 << 16;
    (void)draft_.for_each_layer(config_, "compress_ratios",
                                [&](KindShape& layer, const JsonCursor& at) {
                                  layer.window = window;
                                  layer.one_projection = true;
                                  layer.compression = at.integer(0, kMostRatio);
                                  if (layer.compression == kChosenFrom)
                                    layer.index = index_of_keys();
                                });
  }
  [[nodiscard]] KeyIndex index_of_keys() const {
    return {.keys = config_.at("index_topk").integer(1, kMostTokens),
            .heads = config_.at("index_n_heads").integer(1, kMostHeads),
            .dim = config_.at("index_head_dim").integer(1, kMostWidth)};
  }

  /// Layers whose attention goes over the keys that an index chooses.
  void read_choices() {
    if (draft_.has("sparse_attention_config")) return read_sparse_blocks();
    if (!draft_.has("index_topk") || draft_.has("compress_ratios")) return;
    for (KindShape& layer : layers_) layer.index = index_of_keys();
    constexpr std::array<std::string_view, 2> kTypes{"full", "shared"};
    (void)draft_.for_each_layer(config_, "indexer_types",
                                [&](KindShape& layer, const JsonCursor& type) {
                                  layer.index.shared = type.choice(kTypes) == 1;
                                });
  }
  void read_sparse_blocks() {
    const JsonCursor sparse = config_.at("sparse_attention_config");
    if (!flag_or(sparse, "use_sparse_attention", true)) return;
    const int block = sparse.at("sparse_block_size").integer(1, kMostTokens);
    const int blocks = sparse.at("sparse_topk_blocks").integer(1, kMostTokens / block / 2) +
                       integer_or(sparse, "sparse_local_block", 0, kMostTokens / block / 4, 0) +
                       integer_or(sparse, "sparse_init_block", 0, kMostTokens / block / 4, 0);
    const KeyIndex index{.keys = blocks * block,
                         .heads = sparse.at("sparse_num_index_heads").integer(1, kMostHeads),
                         .dim = sparse.at("sparse_index_dim").integer(1, kMostWidth),
                         .block = block};
    if (draft_.for_each_layer(sparse, "sparse_attention_freq",
                              [&](KindShape& layer, const JsonCursor& flag) {
                                if (flag.integer(0, 1) == 1) layer.index = index;
                              })) {
      return;
    }
    for (KindShape& layer : layers_) layer.index = index;
  }

  /// Head by head, between their product and their rotation.
  [[nodiscard]] bool norms_queries() const {
    constexpr std::array kNormed{"qwen3",       "gemma3",  "olmo2", "olmo3",
                                 "olmo_hybrid", "exaone4", "afmoe"};
    const bool family = std::ranges::any_of(
        kNormed, [this](const char* prefix) { return type_.starts_with(prefix); });
    return family || flag_or(config_, "use_qk_norm", false) ||
           flag_or(config_, "qk_layernorm", false);
  }

  void read_gates() {
    const bool plain =
        type_.starts_with("qwen3_next") || type_.starts_with("qwen3_5") || type_ == "afmoe";
    const bool gates = flag_or(config_, "attn_output_gate", plain) ||
                       flag_or(config_, "attention_output_gate", false) ||
                       flag_or(config_, "mla_use_output_gate", false);
    for (KindShape& layer : layers_) {
      layer.output_gate = gates && layer.mixer == Mixer::attention;
    }
    if (norms_queries()) {
      draft_.assumptions.emplace_back("model: norms of queries and keys are left out");
    }
    if (draft_.has("attn_res_block_size")) {
      draft_.assumptions.emplace_back(
          "model: the sums of its residual stream over earlier blocks (attn_res_block_size) are "
          "left out");
    }
  }

  /// Encoders that were made of decoders (EmbeddingGemma), whose windows are around each token.
  void read_directions() {
    const std::optional<JsonCursor> both = first_of(config_, {"use_bidirectional_attention"});
    // Of some the word "vision": among an image's patches, which is left out. Dream fills words in.
    const bool says = both && !both->is_string() && both->boolean();
    if (type_.starts_with("llada2") || type_.starts_with("sdar")) {
      draft_.assumptions.emplace_back(
          "model: it fills words in, block by block; its tokens were taken to see those before "
          "them "
          "alone, each once");
    }
    if (!says && type_ != "Dream" && type_ != "llada_moe") return;
    for (KindShape& layer : layers_) layer.bidirectional = true;
  }

  /// Layers that take keys and values from a layer before them: all but the first of each few
  /// (Hunyuan Large: Sun et al. 2024, arXiv:2411.02265, section 2.1.2), or so many at the end, each
  /// from the last of its own type (Gemma 4).
  void read_shared_keys() {
    if (flag_or(config_, "use_cla", false)) {
      const int of = integer_or(config_, "cla_share_factor", 1, kMostLayers, 1);
      for (int i = 0; i < shape_.layers; ++i) {
        layers_[static_cast<std::size_t>(i)].shared_keys = i % of != 0;
      }
    }
    const int last = integer_or(config_, "num_kv_shared_layers", 0, kMostLayers, 0);
    if (last == 0) return;
    if (last >= shape_.layers) {
      config_.at("num_kv_shared_layers")
          .fail("less than " + std::to_string(shape_.layers) + " (num_hidden_layers)");
    }
    const bool wide = flag_or(config_, "use_double_wide_mlp", false);
    for (int i = shape_.layers - last; i < shape_.layers; ++i) {
      KindShape& layer = layers_[static_cast<std::size_t>(i)];
      layer.shared_keys = true;
      if (wide) layer.ffn *= 2;
    }
  }
};

}  // namespace

void read_layer_reach(LayerDraft& draft) { LayerReach(draft).read(); }

}  // namespace lockstep::hugging_face
