#include "models/workload/partition.hpp"

#include <cassert>
#include <cstddef>

namespace lockstep {
namespace {

std::vector<int> split_by_cost(const TransformerShape& model, std::size_t stages) {
  double whole = static_cast<double>(model.vocabulary) * model.hidden;
  for (int i = 0; i < model.layers; ++i) whole += layer_matrix_parameters(model, model.kind(i));
  std::vector<int> layers(stages, 0);
  std::size_t stage = 0;
  double sum = 0;
  for (int i = 0; i < model.layers; ++i) {
    ++layers[stage];
    sum += layer_matrix_parameters(model, model.kind(i));
    const double share = whole * static_cast<double>(stage + 1) / static_cast<double>(stages);
    if (sum > share && stage + 1 < stages) ++stage;
  }
  return layers;
}

}  // namespace

std::vector<int> layers_per_virtual_stage(const TransformerShape& model, const Parallelism& par) {
  if (!par.layers_per_stage.empty()) return par.layers_per_stage;
  const int stages = par.pipeline * par.virtual_stages;
  assert(stages >= 1 && stages <= model.layers + 2);
  const auto count = static_cast<std::size_t>(stages);
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
