/// A decoder that is read layer by layer, and the parts that read it one after another. For
/// models/spec/hugging_face_layers.cpp.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/json_cursor.hpp"
#include "models/spec/hugging_face_parts.hpp"
#include "models/spec/transformer.hpp"

namespace lockstep::hugging_face {

/// Names of one thing, of which a file has one or none.
using KeyNames = std::initializer_list<std::string_view>;

/// The first of them that is there and not null.
std::optional<JsonCursor> first_of(const JsonCursor& config, KeyNames keys);
/// A number, or a list with one number for all layers (Hunyuan).
int number_of(const JsonCursor& value, int low, int high);
int first_or(const JsonCursor& config, KeyNames keys, int low, int high, int otherwise);
/// Where it has to be there: the complaint is about the first of its names.
int first_at(const JsonCursor& config, KeyNames keys, int low, int high);

/// What has been read of a decoder so far.
struct LayerDraft {
  const JsonCursor& config;
  std::string_view type;
  TransformerShape& shape;
  std::vector<std::string>& assumptions;
  std::vector<KindShape> layers;

  [[nodiscard]] bool has(std::string_view key) const { return first_of(config, {key}).has_value(); }
  /// A list with an element for each layer; of some, further ones are for prediction modules.
  [[nodiscard]] std::vector<JsonCursor> list_of(const JsonCursor& list) const;
  /// Calls `use` for each layer with the value that a list has for it; false where there is none.
  template <class Use>
  bool for_each_layer(const JsonCursor& of, std::string_view key, const Use& use) {
    const std::optional<JsonCursor> list = first_of(of, {key});
    if (!list || !list->is_array()) return false;
    const std::vector<JsonCursor> elements = list_of(*list);
    for (std::size_t i = 0; i < elements.size(); ++i) use(layers[i], elements[i]);
    return true;
  }
};

/// What each part of the reading works on.
class LayerPart {
 public:
  explicit LayerPart(LayerDraft& draft)
      : draft_(draft),
        config_(draft.config),
        type_(draft.type),
        shape_(draft.shape),
        layers_(draft.layers) {}

 protected:
  LayerDraft& draft_;
  const JsonCursor& config_;
  std::string_view type_;
  TransformerShape& shape_;
  std::vector<KindShape>& layers_;
};

// In this order, for what is read later stands on what was read before.

/// The number of layers and the widths that all have, and layers with widths of their own.
void read_layer_widths(LayerDraft& draft);
/// Experts, and which layers have them.
void read_layer_experts(LayerDraft& draft);
/// What lets tokens see each other, layer by layer.
void read_layer_mixers(LayerDraft& draft);
// For the rows of mixers: the numbers of each, and which layers have it.
void read_delta_layers(LayerDraft& draft);
void read_linear_layers(LayerDraft& draft);
void read_mamba_layers(LayerDraft& draft);
void read_short_convolutions(LayerDraft& draft);

/// What a layer's attention sees: windows, chosen keys, other layers' keys, tokens behind its own.
void read_layer_reach(LayerDraft& draft);

}  // namespace lockstep::hugging_face
