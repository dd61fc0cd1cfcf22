/// What attention and recurrences of one layer keep and do for one sequence, on one GPU of several.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "models/spec/layer.hpp"

namespace lockstep {

/// Layers of each kind, in the order of their first.
inline std::vector<std::pair<LayerKind, int>> layer_kinds(const TransformerShape& model) {
  std::vector<std::pair<LayerKind, int>> kinds;
  for (int layer = 0; layer < model.layers; ++layer) {
    const LayerKind kind = model.kind(layer);
    const auto known =
        std::ranges::find_if(kinds, [&](const auto& other) { return other.first == kind; });
    if (known == kinds.end()) {
      kinds.emplace_back(kind, 1);
    } else {
      ++known->second;
    }
  }
  return kinds;
}

/// Weights of an engine outside the layers: tables, a tower of images whether any come or not, and
/// the output projection.
inline double end_parameters(const TransformerShape& model) {
  return embedding_parameters(model) + (model.tied ? 0 : table_parameters(model));
}

class LayerCache {
 public:
  LayerCache(const TransformerShape& model, LayerKind kind, double ranks)
      : cache_(declare_layer(model, kind).cache), ranks_(ranks) {}

  /// Whether a query reads keys of earlier tokens.
  [[nodiscard]] bool attends() const { return !cache_.keys.empty(); }
  /// Elements of one token.
  [[nodiscard]] double elements() const {
    return cache_.entries * cache_.entry.on(ranks_) + cache_.index_entry;
  }
  [[nodiscard]] double state() const { return cache_.state / ranks_; }
  /// Elements that a query reads which comes behind `context` tokens, and its FLOP. Ranks each
  /// score with the whole index.
  [[nodiscard]] double read(double context) const {
    return seen(context) * cache_.entry.on(ranks_) + context * cache_.index_entry;
  }
  [[nodiscard]] double flops(double context) const {
    return seen(context) * cache_.flops_per_entry / ranks_ +
           cache_.index_keys.at_end_of(context) * cache_.index_flops;
  }

 private:
  [[nodiscard]] double seen(double context) const {
    double sum = 0;
    for (const Keys& keys : cache_.keys) sum += keys.at_end_of(context);
    return sum;
  }

  Cache cache_;
  double ranks_;
};

}  // namespace lockstep
