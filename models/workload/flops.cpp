#include "models/workload/flops.hpp"

namespace lockstep {

StepFlops step_flops(const TrainingJob& job) {
  const TransformerShape& m = job.model;
  const double tokens = static_cast<double>(job.batch.sequences) * job.batch.tokens;
  const double layer_matrices = m.layers * layer_matrix_parameters(m);
  const double matrices = layer_matrices + static_cast<double>(m.vocabulary) * m.hidden;
  const double attention_forward =
      4.0 * m.layers * m.heads * static_cast<double>(m.head_dim) * job.batch.tokens;
  const double products = 6.0 * matrices;
  double repeated = 0.0;
  if (job.recompute == Recompute::full) repeated = 2.0 * layer_matrices + attention_forward;
  if (job.recompute == Recompute::selective) repeated = attention_forward;
  return {.causal = Flops{tokens * (products + 1.5 * attention_forward)},
          .full = Flops{tokens * (products + 3.0 * attention_forward)},
          .hardware = Flops{tokens * (products + 3.0 * attention_forward + repeated)}};
}

}  // namespace lockstep
