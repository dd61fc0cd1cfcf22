#include "models/spec/parameter_counts.hpp"

namespace lockstep {

ParameterCounts parameter_counts(const TransformerShape& model) {
  TransformerShape alone = model;
  alone.predicted_tokens = 0;
  ParameterCounts counts{.total = total_parameters(alone)};
  counts.prediction = total_parameters(model) - counts.total;
  counts.vision = model.vision_parameters + running_tower_parameters(model);
  counts.total -= counts.vision;
  counts.active = counts.total;
  if (model.experts.count == 0) return counts;
  const double idle = 1 - static_cast<double>(model.experts.per_token) / model.experts.count;
  for (int i = 0; i < model.layers; ++i) {
    if (model.kind(i).experts) counts.active -= idle * expert_parameters(model);
  }
  return counts;
}

}  // namespace lockstep
