// Which mixer each layer of a decoder has: attention, delta nets, state spaces, none.
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "models/spec/hugging_face_layers.hpp"

namespace lockstep::hugging_face {
namespace {

/// Reads the mixer of each layer, by its family or by the keys that the mixer has.
class LayerMixers : private LayerPart {
 public:
  using LayerPart::LayerPart;

  void read() {
    read_mixers();
    read_image_layers();
    refuse_other_types();
  }

 private:
  void read_mixers() {
    if (const std::optional<JsonCursor> linear = first_of(config_, {"linear_attn_config"})) {
      return read_kimi(*linear);
    }
    if (const MixerKind* kind = mixer_of_family(type_)) return read_mixer(*kind);
    if (has_linear_attention()) return read_linear();
    if (type_ == "granitemoehybrid" || type_ == "bamba") return read_granite();
    if (!draft_.has("linear_num_value_heads")) return;
    DeltaShape& d = shape_.delta;
    d.key_heads = config_.at("linear_num_key_heads").integer(1, kMostHeads);
    d.value_heads = config_.at("linear_num_value_heads").integer(1, kMostHeads);
    d.key_dim = config_.at("linear_key_head_dim").integer(1, kMostWidth);
    d.value_dim = config_.at("linear_value_head_dim").integer(1, kMostWidth);
    d.kernel = integer_or(config_, "linear_conv_kernel_dim", 1, 64, 4);
    if (d.value_heads % d.key_heads != 0) {
      config_.at("linear_num_value_heads")
          .fail("a multiple of " + std::to_string(d.key_heads) + " (linear_num_key_heads)");
    }
    constexpr std::array<std::string_view, 2> kTypes{"full_attention", "linear_attention"};
    if (draft_.for_each_layer(config_, "layer_types",
                              [&](KindShape& layer, const JsonCursor& type) {
                                if (type.choice(kTypes) == 1) make_delta(layer);
                              })) {
      return;
    }
    const int interval = integer_or(config_, "full_attention_interval", 1, kMostLayers, 4);
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      if ((i + 1) % static_cast<std::size_t>(interval) != 0) make_delta(layers_[i]);
    }
  }
  /// Its numbers, and which layers have it: by their types, or all but those of a list.
  void read_mixer(const MixerKind& kind) {
    for (const MixerMember& one : kind.members) {
      const JsonCursor at = config_.at(one.config_key);
      one.number(shape_) = at.integer(one.low, one.high);
    }
    const std::array<std::string_view, 2> types{"full_attention", kind.layer_type};
    if (draft_.for_each_layer(config_, "layer_types",
                              [&](KindShape& layer, const JsonCursor& type) {
                                if (type.choice(types) == 1) layer.mixer = kind.mixer;
                              })) {
      return;
    }
    for (KindShape& layer : layers_) layer.mixer = kind.mixer;
    for (const JsonCursor& at : config_.at("full_attn_idxs").elements(kMostLayers)) {
      layers_[static_cast<std::size_t>(at.integer(0, shape_.layers - 1))].mixer = Mixer::attention;
    }
  }
  /// Lightning attention of MiniMax-01 and M1, and of Ring's linear models.
  [[nodiscard]] bool has_linear_attention() const {
    constexpr std::array<std::string_view, 4> kTypes{"minimax", "minimax_text_01", "minimax_m1",
                                                     "bailing_moe_linear"};
    return std::ranges::find(kTypes, type_) != kTypes.end();
  }
  /// As many heads of keys and values as of queries; which layers have it says a list, or all but
  /// the last of each group and what is behind the last whole group have it (Ring).
  void read_linear() {
    const Mixer mixer = mixer_called("linear_attention");
    MixerNumbers& numbers = shape_.mixers[static_cast<std::size_t>(mixer)];
    numbers[0] = shape_.heads;
    numbers[1] = shape_.head_dim;
    const auto set = [&](KindShape& layer, bool linear) {
      if (linear) layer.mixer = mixer;
    };
    constexpr std::array<std::string_view, 2> kNames{"full_attention", "linear_attention"};
    if (draft_.for_each_layer(config_, "attn_type_list",
                              [&](KindShape& layer, const JsonCursor& type) {
                                set(layer, type.integer(0, 1) == 0);
                              }) ||
        draft_.for_each_layer(config_, "layer_types",
                              [&](KindShape& layer, const JsonCursor& type) {
                                set(layer, type.choice(kNames) == 1);
                              })) {
      return;
    }
    const int group = config_.at("layer_group_size").integer(1, kMostLayers);
    const int whole = shape_.layers / group * group;
    for (int i = 0; i < whole; ++i) {
      set(layers_[static_cast<std::size_t>(i)], (i + 1) % group != 0);
    }
  }
  /// Which layers are Mamba-2's: by their types, or all but those of a list (Bamba).
  void mark_mamba() {
    constexpr std::array<std::string_view, 2> kTypes{"attention", "mamba"};
    if (draft_.for_each_layer(config_, "layer_types",
                              [&](KindShape& layer, const JsonCursor& type) {
                                if (type.choice(kTypes) == 1) layer.mixer = Mixer::mamba;
                              })) {
      return;
    }
    const JsonCursor list = config_.at(type_ == "bamba" ? "attn_layer_indices" : "layer_types");
    for (KindShape& layer : layers_) layer.mixer = Mixer::mamba;
    for (const JsonCursor& at : list.elements(kMostLayers)) {
      layers_[static_cast<std::size_t>(at.integer(0, shape_.layers - 1))].mixer = Mixer::attention;
    }
  }
  /// Mamba-2 or attention before the MLP or the experts of each layer
  /// (github:huggingface/transformers:src/transformers/models/granitemoehybrid).
  void read_granite() {
    mark_mamba();
    MambaShape& mamba = shape_.mamba;
    mamba.heads = integer_or(config_, "mamba_n_heads", 1, kMostHeads, 128);
    mamba.state = integer_or(config_, "mamba_d_state", 1, kMostWidth, 256);
    mamba.groups = integer_or(config_, "mamba_n_groups", 1, kMostHeads, 1);
    mamba.kernel = integer_or(config_, "mamba_d_conv", 1, 64, 4);
    mamba.chunk = integer_or(config_, "mamba_chunk_size", 1, kMostTokens, 256);
    const int columns = shape_.hidden * integer_or(config_, "mamba_expand", 1, 64, 2);
    const std::optional<JsonCursor> dim = first_of(config_, {"mamba_d_head"});
    mamba.head_dim = dim && dim->is_number() ? dim->integer(1, kMostWidth) : columns / mamba.heads;
    if (mamba.head_dim * mamba.heads != columns || mamba.heads % mamba.groups != 0) {
      config_.at("mamba_n_heads")
          .fail("a multiple of mamba_n_groups that with mamba_d_head makes " +
                std::to_string(columns) + " columns");
    }
  }
  /// Layers count from 1 in these lists (github:MoonshotAI/Kimi-Linear).
  void read_kimi(const JsonCursor& linear) {
    DeltaShape& d = shape_.delta;
    d.key_heads = d.value_heads = linear.at("num_heads").integer(1, kMostHeads);
    d.key_dim = d.value_dim = linear.at("head_dim").integer(1, kMostWidth);
    d.kernel = integer_or(linear, "short_conv_kernel_size", 1, 64, 4);
    d.channel_decay = true;
    d.gate_rank = flag_or(linear, "use_full_rank_gate", false) ? 0 : d.key_dim;
    for (const JsonCursor& layer : linear.at("kda_layers").elements(kMostLayers)) {
      make_delta(layers_[static_cast<std::size_t>(layer.integer(1, shape_.layers) - 1)]);
    }
    (void)linear.find("full_attn_layers");
    (void)linear.find("gate_lower_bound");
  }
  /// Layers whose attention goes over an image alone, behind gates, and rows of the embedding for
  /// images (github:huggingface/transformers:src/transformers/models/mllama).
  void read_image_layers() {
    if (type_ != "mllama_text_model") return;
    constexpr int kRows = 8, kGates = 2;
    shape_.other_parameters += static_cast<double>(kRows) * shape_.hidden;
    for (const JsonCursor& at : config_.at("cross_attention_layers").elements(kMostLayers)) {
      KindShape& layer = layers_[static_cast<std::size_t>(at.integer(0, shape_.layers - 1))];
      layer.mixer = Mixer::none;
      layer.cross = true;
      shape_.other_parameters += 2.0 * shape_.head_dim + kGates;
    }
  }
  static void make_delta(KindShape& layer) {
    layer.mixer = Mixer::delta;
    layer.latent = false;
  }

  /// Types of layers that no mixer above has read, and that nobody would read.
  void refuse_other_types() const {
    if (shape_.delta.key_heads > 0 || shape_.mamba.heads > 0 || mixer_of_family(type_) != nullptr ||
        has_linear_attention()) {
      return;
    }
    const std::optional<JsonCursor> types = first_of(config_, {"layer_types"});
    if (!types || !types->is_array()) return;
    constexpr std::array<std::string_view, 2> kKnown{"full_attention", "sliding_attention"};
    for (const JsonCursor& type : types->elements(kMostLayers)) (void)type.choice(kKnown);
  }
};

}  // namespace

void read_layer_mixers(LayerDraft& draft) { LayerMixers(draft).read(); }

}  // namespace lockstep::hugging_face
