// The layers of a vision tower in front of a decoder's.
#include <algorithm>
#include <cassert>
#include <string>
#include <utility>

#include "models/spec/layer.hpp"

namespace lockstep {
namespace {

constexpr std::string_view kKindLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

std::string free_letter(const TransformerShape& m) {
  const auto is_free = [&](char letter) {
    return std::ranges::none_of(m.kinds,
                                [&](const KindShape& k) { return k.letter.front() == letter; });
  };
  const auto at = std::ranges::find_if(kKindLetters, is_free);
  assert(at != kKindLetters.end());
  return {*at};
}

/// Writes the layers of a model without kinds as kinds.
void declare_kinds_of(TransformerShape& m) {
  std::string pattern;
  std::vector<std::pair<LayerKind, std::string>> known;
  std::vector<KindShape> kinds;
  for (int i = 0; i < m.layers; ++i) {
    const LayerKind kind = m.kind(i);
    auto at = std::ranges::find(known, kind, &std::pair<LayerKind, std::string>::first);
    if (at == known.end()) {
      KindShape shape = shape_of(m, kind);
      shape.letter = kKindLetters[kinds.size()];
      at = known.insert(known.end(), {kind, shape.letter});
      kinds.push_back(std::move(shape));
    }
    pattern += at->second;
  }
  m.kinds = std::move(kinds);
  m.pattern = std::move(pattern);
}

KindShape images_kind(const TransformerShape& m, int images) {
  const VisionTower& tower = m.tower;
  KindShape kind;
  kind.letter = free_letter(m);
  kind.hidden = tower.hidden;
  kind.heads = kind.kv_heads = tower.heads;
  kind.head_dim = tower.hidden / tower.heads;
  kind.ffn = tower.ffn;
  kind.plain_mlp = m.gated && !tower.gated;
  kind.bidirectional = true;
  // Attention stays inside an image.
  kind.tokens = images * tower.patches;
  kind.window = tower.patches;
  kind.chunked = true;
  return kind;
}

}  // namespace

TransformerShape with_images(const TransformerShape& m, int images) {
  assert(m.tower.layers > 0 && images > 0);
  TransformerShape out = m;
  if (out.kinds.empty()) declare_kinds_of(out);
  out.kinds.push_back(images_kind(out, images));
  const auto layers = static_cast<std::size_t>(m.tower.layers);
  out.pattern.insert(0, std::string(layers, out.kinds.back().letter.front()));
  out.layers += m.tower.layers;
  // Norms and biases are those that the decoder has; the rest of the tower's weights stays where it
  // was, so that the model has as many as before.
  out.vision_parameters -= m.tower.layers * layer_parameters(out, out.kind(0));
  return out;
}

double running_tower_parameters(const TransformerShape& m) {
  if (m.tower.layers == 0 || m.kinds.empty()) return 0;
  const KindShape& last = m.kinds.back();
  const bool runs = last.tokens > 0 && last.letter.front() == m.pattern.front();
  return runs ? m.tower.layers * layer_parameters(m, m.kind(0)) : 0;
}

}  // namespace lockstep
