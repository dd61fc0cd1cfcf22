#include "sim/rl/rl_account.hpp"

#include "models/layer/flops.hpp"
#include "models/layer/frozen_models.hpp"

namespace lockstep {
namespace {

/// Of one forward pass: a third of a step in which all is trained.
Flops forward_flops(TrainingJob job, const Batch& batch) {
  job.batch = batch;
  job.adapters = {};
  job.frozen = {};
  return 1.0 / 3 * step_flops(job).full;
}

}  // namespace

std::vector<TransformerShape> frozen_models(const RlScenario& s) {
  std::vector<TransformerShape> models;
  if (!s.rl.algorithm->offline) return models;
  const TrainingJob& actor = s.training.job;
  if (s.rl.reference && !actor.adapters.any()) models.push_back(actor.model);
  if (s.rl.teacher) models.push_back(s.rl.teacher->job.model);
  return models;
}

MemoryVerdict rl_memory(const RlScenario& s) {
  const Scenario& t = s.training;
  return check_memory_beside(t.job, t.stack, t.node.gpu, frozen_models(s));
}

Bytes frozen_weights(const RlScenario& s) {
  const int stage = rl_memory(s).fullest_stage;
  Bytes sum;
  for (const TransformerShape& model : frozen_models(s)) {
    sum += frozen_weights(s.training.job, model, s.training.stack, stage);
  }
  return sum;
}

RlFlops rl_flops(const RlScenario& s, const Batch& batch) {
  TrainingJob actor = s.training.job;
  actor.batch = batch;
  const double updates = s.rl.updates;
  RlFlops out{.training = updates * s.rl.epochs * step_flops(actor).full, .scores = {}};
  if (s.rl.reference) out.scores += updates * forward_flops(s.training.job, batch);
  if (s.rl.teacher) out.scores += updates * forward_flops(s.rl.teacher->job, batch);
  return out;
}

}  // namespace lockstep
