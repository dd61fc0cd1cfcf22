// Which mixer each layer of a decoder has: attention, delta nets, state spaces, none. Families and
// keys that decide are those of the mixers' rows.
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "models/spec/hugging_face_layers.hpp"

namespace lockstep::hugging_face {
namespace {

void give(KindShape& layer, Mixer mixer) {
  layer.mixer = mixer;
  layer.latent = false;
}

using LayerTypes = std::array<std::string_view, 2>;
/// Gives the mixer to layers whose word in a list is the second one; false where there is no list.
bool give_by_type(LayerDraft& draft, std::string_view key, const LayerTypes& types, Mixer mixer) {
  return draft.for_each_layer(draft.config, key, [&](KindShape& layer, const JsonCursor& type) {
    if (type.choice(types) == 1) give(layer, mixer);
  });
}
/// Gives it to all layers but those of a list, which attend.
void give_to_others(LayerDraft& draft, std::string_view attending, Mixer mixer) {
  const JsonCursor list = draft.config.at(attending);
  for (KindShape& layer : draft.layers) give(layer, mixer);
  for (const JsonCursor& at : list.elements(kMostLayers)) {
    draft.layers[static_cast<std::size_t>(at.integer(0, draft.shape.layers - 1))].mixer =
        Mixer::attention;
  }
}

/// Kimi Delta Attention; layers count from 1 in its lists (github:MoonshotAI/Kimi-Linear).
void read_kimi(const JsonCursor& linear, LayerDraft& draft) {
  DeltaShape& d = draft.shape.delta;
  d.key_heads = d.value_heads = linear.at("num_heads").integer(1, kMostHeads);
  d.key_dim = d.value_dim = linear.at("head_dim").integer(1, kMostWidth);
  d.kernel = integer_or(linear, "short_conv_kernel_size", 1, 64, 4);
  d.channel_decay = true;
  d.gate_rank = flag_or(linear, "use_full_rank_gate", false) ? 0 : d.key_dim;
  for (const JsonCursor& layer : linear.at("kda_layers").elements(kMostLayers)) {
    give(draft.layers[static_cast<std::size_t>(layer.integer(1, draft.shape.layers) - 1)],
         Mixer::delta);
  }
  (void)linear.find("full_attn_layers");
  (void)linear.find("gate_lower_bound");
}

/// Reads the mixer of each layer, by its family or by the keys that the mixer has.
class LayerMixers : private LayerPart {
 public:
  using LayerPart::LayerPart;

  void read() {
    if (const MixerKind* kind = deciding()) kind->read_layers(draft_);
    read_image_layers();
    refuse_other_types();
  }

 private:
  /// The mixer whose row names the family, else one of whose keys the file has.
  [[nodiscard]] const MixerKind* deciding() const {
    if (const MixerKind* kind = mixer_of_family(type_)) return kind;
    for (const MixerKind* kind : mixer_kinds()) {
      for (const std::string_view key : each_of(kind->family_keys)) {
        if (draft_.has(key)) return kind;
      }
    }
    return nullptr;
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
  /// Types of layers that no mixer above has read, and that nobody would read.
  void refuse_other_types() const {
    if (deciding() != nullptr || shape_.mamba.heads > 0) return;
    const std::optional<JsonCursor> types = first_of(config_, {"layer_types"});
    if (!types || !types->is_array()) return;
    constexpr std::array<std::string_view, 2> kKnown{"full_attention", "sliding_attention"};
    for (const JsonCursor& type : types->elements(kMostLayers)) (void)type.choice(kKnown);
  }
};

}  // namespace

void read_delta_layers(LayerDraft& draft) {
  const JsonCursor& config = draft.config;
  if (const std::optional<JsonCursor> linear = first_of(config, {"linear_attn_config"})) {
    return read_kimi(*linear, draft);
  }
  DeltaShape& d = draft.shape.delta;
  d.key_heads = config.at("linear_num_key_heads").integer(1, kMostHeads);
  d.value_heads = config.at("linear_num_value_heads").integer(1, kMostHeads);
  d.key_dim = config.at("linear_key_head_dim").integer(1, kMostWidth);
  d.value_dim = config.at("linear_value_head_dim").integer(1, kMostWidth);
  d.kernel = integer_or(config, "linear_conv_kernel_dim", 1, 64, 4);
  if (d.value_heads % d.key_heads != 0) {
    config.at("linear_num_value_heads")
        .fail("a multiple of " + std::to_string(d.key_heads) + " (linear_num_key_heads)");
  }
  if (give_by_type(draft, "layer_types", {"full_attention", "linear_attention"}, Mixer::delta)) {
    return;
  }
  const int interval = integer_or(config, "full_attention_interval", 1, kMostLayers, 4);
  for (std::size_t i = 0; i < draft.layers.size(); ++i) {
    if ((i + 1) % static_cast<std::size_t>(interval) != 0) give(draft.layers[i], Mixer::delta);
  }
}

/// Lightning attention of MiniMax-01 and M1, and of Ring's linear models: as many heads of keys and
/// values as of queries; which layers have it says a list, or all but the last of each group and
/// what is behind the last whole group have it (Ring).
void read_linear_layers(LayerDraft& draft) {
  const Mixer mixer = mixer_called("linear_attention");
  MixerNumbers& numbers = draft.shape.mixers[static_cast<std::size_t>(mixer)];
  numbers[0] = draft.shape.heads;
  numbers[1] = draft.shape.head_dim;
  if (draft.for_each_layer(draft.config, "attn_type_list",
                           [&](KindShape& layer, const JsonCursor& type) {
                             if (type.integer(0, 1) == 0) give(layer, mixer);
                           }) ||
      give_by_type(draft, "layer_types", {"full_attention", "linear_attention"}, mixer)) {
    return;
  }
  const int group = draft.config.at("layer_group_size").integer(1, kMostLayers);
  const int whole = draft.shape.layers / group * group;
  for (int i = 0; i < whole; ++i) {
    if ((i + 1) % group != 0) give(draft.layers[static_cast<std::size_t>(i)], mixer);
  }
}

/// Mamba-2 or attention before the MLP or the experts of each layer
/// (github:huggingface/transformers:src/transformers/models/granitemoehybrid, bamba).
void read_mamba_layers(LayerDraft& draft) {
  const JsonCursor& config = draft.config;
  if (!give_by_type(draft, "layer_types", {"attention", "mamba"}, Mixer::mamba)) {
    give_to_others(draft, draft.type == "bamba" ? "attn_layer_indices" : "layer_types",
                   Mixer::mamba);
  }
  MambaShape& mamba = draft.shape.mamba;
  mamba.heads = integer_or(config, "mamba_n_heads", 1, kMostHeads, 128);
  mamba.state = integer_or(config, "mamba_d_state", 1, kMostWidth, 256);
  mamba.groups = integer_or(config, "mamba_n_groups", 1, kMostHeads, 1);
  mamba.kernel = integer_or(config, "mamba_d_conv", 1, 64, 4);
  mamba.chunk = integer_or(config, "mamba_chunk_size", 1, kMostTokens, 256);
  const int columns = draft.shape.hidden * integer_or(config, "mamba_expand", 1, 64, 2);
  const std::optional<JsonCursor> dim = first_of(config, {"mamba_d_head"});
  mamba.head_dim = dim && dim->is_number() ? dim->integer(1, kMostWidth) : columns / mamba.heads;
  if (mamba.head_dim * mamba.heads != columns || mamba.heads % mamba.groups != 0) {
    config.at("mamba_n_heads")
        .fail("a multiple of mamba_n_groups that with mamba_d_head makes " +
              std::to_string(columns) + " columns");
  }
}

void read_short_convolutions(LayerDraft& draft) {
  const MixerKind& kind = info(mixer_called("short_convolution"));
  for (const MixerMember& one : kind.members) {
    one.number(draft.shape) = draft.config.at(one.config_key).integer(one.low, one.high);
  }
  if (!give_by_type(draft, "layer_types", {"full_attention", "conv"}, kind.mixer)) {
    give_to_others(draft, "full_attn_idxs", kind.mixer);
  }
}

void read_layer_mixers(LayerDraft& draft) { LayerMixers(draft).read(); }

}  // namespace lockstep::hugging_face
