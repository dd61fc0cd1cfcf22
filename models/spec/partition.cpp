#include "models/spec/partition.hpp"

#include <cassert>
#include <cstddef>

#include "models/spec/layer.hpp"

namespace lockstep {
namespace {

std::vector<int> split_by_cost(const TransformerShape& model, std::size_t stages) {
  double whole = table_parameters(model);
  PerKind<double> known;
  const auto weights = [&](int layer) {
    return known.at(model.kind(layer),
                    [&](LayerKind kind) { return layer_matrix_parameters(model, kind); });
  };
  for (int i = 0; i < model.layers; ++i) whole += weights(i);
  std::vector<int> layers(stages, 0);
  std::size_t stage = 0;
  double sum = 0;
  for (int i = 0; i < model.layers; ++i) {
    ++layers[stage];
    sum += weights(i);
    const double share = whole * static_cast<double>(stage + 1) / static_cast<double>(stages);
    if (sum > share && stage + 1 < stages) ++stage;
  }
  return layers;
}

/// Embedding and output projection where the job says.
std::vector<int> split_by_places(const TransformerShape& model, const Parallelism& par,
                                 std::size_t stages) {
  std::vector<int> layers(stages, 0);
  const auto is = [](EndPlace place, EndPlace what) { return place == what ? 1 : 0; };
  const auto first = static_cast<std::size_t>(is(par.embedding, EndPlace::stage));
  const std::size_t end = stages - static_cast<std::size_t>(is(par.output, EndPlace::stage));
  assert(first < end);
  const int before = is(par.embedding, EndPlace::layer), after = is(par.output, EndPlace::layer);
  const int places = model.layers + before + after;
  const auto count = static_cast<int>(end - first);
  for (std::size_t s = first; s < end; ++s) {
    const bool one_more = static_cast<int>(s - first) < places % count;
    layers[s] = places / count + (one_more ? 1 : 0);
  }
  layers[first] -= before;
  layers[end - 1] -= after;
  return layers;
}

}  // namespace

std::vector<int> layers_per_virtual_stage(const TransformerShape& model, const Parallelism& par) {
  if (!par.layers_per_stage.empty()) return par.layers_per_stage;
  const int stages = par.pipeline * par.virtual_stages;
  assert(stages >= 1 && stages <= model.layers + 2);
  const auto count = static_cast<std::size_t>(stages);
  if (par.embedding != EndPlace::automatic || par.output != EndPlace::automatic) {
    return split_by_places(model, par, count);
  }
  if (par.split == LayerSplit::by_cost) return split_by_cost(model, count);
  if (stages == 1 || model.layers % stages == 0) {
    return std::vector<int>(count, model.layers / stages);
  }
  if (model.predicted_tokens > 0 && (model.layers + 3) % stages == 0 &&
      (model.layers + 3) / stages >= 3) {
    std::vector<int> layers(count, (model.layers + 3) / stages);
    layers.back() -= 3;
    return layers;
  }
  for (const int taken : {2, 1}) {
    if ((model.layers + taken) % stages != 0) continue;
    std::vector<int> layers(count, (model.layers + taken) / stages);
    --layers.back();
    if (taken == 2) --layers.front();
    return layers;
  }
  std::vector<int> layers(count, model.layers / stages);
  for (int i = 0; i < model.layers % stages; ++i) ++layers[static_cast<std::size_t>(i)];
  return layers;
}

}  // namespace lockstep
