// Decoders whose layers differ by more than experts and windows, read by the keys that say how.
// Sources: configuration_*.py and modeling_*.py of each family in
// https://github.com/huggingface/transformers, and the code beside the weights of deepseek_v4,
// kimi_linear, minimax_m3, mimo_v2_flash, step3p7 and nemotron-nas on https://huggingface.co.
#include "models/spec/hugging_face_layers.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::hugging_face {

std::optional<JsonCursor> first_of(const JsonCursor& config, KeyNames keys) {
  for (const std::string_view key : keys) {
    std::optional<JsonCursor> value = config.find(key);
    if (value && !value->is_null()) return value;
  }
  return std::nullopt;
}

int number_of(const JsonCursor& value, int low, int high) {
  if (!value.is_array()) return value.integer(low, high);
  const std::vector<JsonCursor> each = value.elements(kMostLayers);
  if (each.empty()) value.fail("a number for each layer");
  const int first = each.front().integer(low, high);
  for (const JsonCursor& one : each) {
    if (one.integer(low, high) != first) one.fail(std::to_string(first) + ", as in all layers");
  }
  return first;
}

int first_or(const JsonCursor& config, KeyNames keys, int low, int high, int otherwise) {
  const std::optional<JsonCursor> value = first_of(config, keys);
  return value ? number_of(*value, low, high) : otherwise;
}

int first_at(const JsonCursor& config, KeyNames keys, int low, int high) {
  const std::optional<JsonCursor> value = first_of(config, keys);
  return number_of(value ? *value : config.at(*keys.begin()), low, high);
}

std::vector<JsonCursor> LayerDraft::list_of(const JsonCursor& list) const {
  std::vector<JsonCursor> elements = list.elements(kMostLayers);
  if (std::ssize(elements) < shape.layers) {
    list.fail("an array of " + std::to_string(shape.layers) + " (num_hidden_layers)");
  }
  elements.erase(elements.begin() + shape.layers, elements.end());
  return elements;
}

namespace {

/// Reads one family's file, layer by layer.
class LayerReader : private LayerPart {
 public:
  using LayerPart::LayerPart;

  void read() {
    read_layer_widths(draft_);
    read_layer_experts(draft_);
    read_layer_mixers(draft_);
    read_layer_reach(draft_);
    read_layer_inputs();
    shape_.residual_streams = integer_or(config_, "hc_mult", 1, 64, 1);
    read_alternating();
    assign_layers();
    constexpr int kMostPredicted = 64;
    shape_.predicted_tokens =
        first_or(config_, {"num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_modules"},
                 0, kMostPredicted, 0);
  }

 private:
  /// Embeddings of each layer's own, whose table no layer has (Gemma 3n and 4).
  void read_layer_inputs() {
    const int columns = integer_or(config_, "hidden_size_per_layer_input", 0, kMostWidth, 0);
    if (columns == 0) return;
    if (!type_.starts_with("gemma4") && !type_.starts_with("gemma3n")) {
      config_.at("hidden_size_per_layer_input").fail("0: how others add it is not known");
    }
    for (KindShape& layer : layers_) layer.layer_input = columns;
    const double words =
        integer_or(config_, "vocab_size_per_layer_input", 1, kMostTokens, shape_.vocabulary);
    shape_.other_parameters += (words * shape_.layers + 1) * columns;
  }

  /// Gemma 3n: four streams, of which a layer reads and writes one, a thin path beside attention,
  /// and products between the streams at both ends. Layers that take keys from others have the
  /// weights of their own all the same, which nobody uses.
  void read_alternating() {
    if (!type_.starts_with("gemma3n")) return;
    constexpr int kStreams = 4, kRank = 64, kMostStreams = 64;
    shape_.residual_streams = integer_or(config_, "altup_num_inputs", 1, kMostStreams, kStreams);
    shape_.alternating = shape_.residual_streams > 1;
    const int rank = integer_or(config_, "laurel_rank", 0, kMostWidth, kRank);
    const double h = shape_.hidden, keys = 2.0 * shape_.kv_heads * shape_.head_dim;
    for (KindShape& layer : layers_) {
      layer.side_rank = rank;
      if (layer.shared_keys) shape_.other_parameters += keys * h;
    }
    shape_.other_parameters += 2 * (shape_.residual_streams - 1) * h * h;
    draft_.assumptions.emplace_back(
        "model: products between its streams before the first layer and behind the last one "
        "(altup_num_inputs) compute nothing; their weights are counted");
  }

  /// Layers that are alike become one kind with a letter; a model of which all layers are alike, or
  /// differ by experts in a regular order only, needs none.
  void assign_layers() {
    const auto is_plain = [&](KindShape layer) {
      layer.ffn = 0;
      layer.experts = false;
      KindShape ordinary;
      ordinary.latent = shape_.latent.key_value_rank > 0;
      return layer == ordinary;
    };
    const bool plain = std::ranges::all_of(layers_, [&](const KindShape& layer) {
      return is_plain(layer) && (layer.experts || layer.ffn == shape_.ffn);
    });
    if (plain) {
      std::vector<bool> marked;
      for (const KindShape& layer : layers_) marked.push_back(layer.experts);
      if (std::ranges::find(marked, true) == marked.end()) {
        shape_.experts = {};
        return;
      }
      if (set_layout(marked, shape_.experts)) return;
    }
    set_kinds(config_, layers_, shape_);
  }
};

}  // namespace

Mixer mixer_called(std::string_view name) {
  const auto kinds = mixer_kinds();
  return (*std::ranges::find_if(kinds, [&](const MixerKind* kind) { return kind->name == name; }))
      ->mixer;
}

void set_kinds(const JsonCursor& config, const std::vector<KindShape>& layers,
               TransformerShape& shape) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  shape.pattern.clear();
  for (KindShape layer : layers) {
    auto same = std::ranges::find_if(shape.kinds, [&](KindShape known) {
      known.letter.clear();
      return known == layer;
    });
    if (same == shape.kinds.end()) {
      if (shape.kinds.size() == kLetters.size()) {
        config.fail("at most " + std::to_string(kLetters.size()) + " kinds of layers");
      }
      layer.letter = kLetters[shape.kinds.size()];
      same = shape.kinds.insert(shape.kinds.end(), layer);
    }
    shape.pattern += same->letter;
  }
}

const MixerKind* mixer_of_family(std::string_view type) {
  for (const MixerKind* kind : mixer_kinds()) {
    if (is_among(kind->families, type)) return kind;
  }
  return nullptr;
}

const MixerKind* mixer_reading(std::string_view type) {
  for (const MixerKind* kind : mixer_kinds()) {
    if (is_among(kind->model_families, type)) return kind;
  }
  return nullptr;
}

void read_layers(const JsonCursor& config, std::string_view type, TransformerShape& shape,
                 std::vector<std::string>& assumptions) {
  LayerDraft draft{
      .config = config, .type = type, .shape = shape, .assumptions = assumptions, .layers = {}};
  LayerReader(draft).read();
}

}  // namespace lockstep::hugging_face
