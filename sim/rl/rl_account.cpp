#include "sim/rl/rl_account.hpp"

#include <cstddef>

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

/// A model that has its turn on the trainers' GPUs.
struct Turn {
  std::string_view key, what;
  TrainingJob job;
  int words;  // of its input table, which the job of a model that gives one number does without
  bool trained;
};

std::vector<Turn> turns_of(const RlScenario& s) {
  const TrainingJob& actor = s.training.job;
  const RlSpec& rl = s.rl;
  std::vector<Turn> out{{"", "training", actor, actor.model.vocabulary, true}};
  if (rl.critic) {
    out.push_back({"critic", "the critic's training", rl.critic->job, rl.critic_words, true});
  }
  if (rl.reward_model) {
    out.push_back({"reward_model", "the reward model",
                   frozen_job(actor, rl.reward_model->job.model), rl.reward_model_words, false});
  }
  if (rl.reference && !actor.adapters.any()) {
    out.push_back({"reference", "the reference model", frozen_job(actor, actor.model),
                   actor.model.vocabulary, false});
  }
  return out;
}

MemoryBreakdown peak_of(const Turn& turn, const StackSpec& stack, int stage) {
  MemoryBreakdown peak = peak_memory(turn.job, stack, stage);
  if (stage > 0 || turn.words <= turn.job.model.vocabulary) return peak;
  const MemoryBreakdown kept = peak_memory(with_input_table(turn.job, turn.words), stack, stage);
  const Bytes before = peak.needed();
  peak.weights = kept.weights;
  peak.gradients = kept.gradients;
  peak.optimiser = kept.optimiser;
  peak.framework += (stack.memory.fragmentation - 1) * (peak.needed() - before);
  return peak;
}

/// Of a model that is trained, between its turns.
Bytes kept_of(const MemoryBreakdown& m) { return m.weights + m.gradients + m.optimiser; }

Bytes needed_of(const std::vector<Turn>& turns, std::size_t which, const RlScenario& s, int stage) {
  const StackSpec& stack = s.training.stack;
  Bytes needed = peak_of(turns[which], stack, stage).needed();
  if (!s.rl.training_stays()) return needed;
  for (std::size_t i = 0; i < turns.size(); ++i) {
    if (i == which || !turns[i].trained) continue;
    needed += stack.memory.fragmentation * kept_of(peak_of(turns[i], stack, stage));
  }
  return needed;
}

}  // namespace

TrainingJob with_input_table(TrainingJob scorer, int words) {
  scorer.model.vocabulary = words;
  scorer.model.tied = true;  // one table: there is no projection on it
  return scorer;
}

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

std::vector<RlTurn> rl_turns(const RlScenario& s) {
  std::vector<RlTurn> out;
  if (s.rl.algorithm->offline) return out;
  const std::vector<Turn> turns = turns_of(s);
  for (std::size_t i = 0; i < turns.size(); ++i) {
    RlTurn turn{.key = turns[i].key, .what = turns[i].what, .stage = 0, .needed = {}};
    for (int stage = 0; stage < s.training.job.parallelism.pipeline; ++stage) {
      const Bytes needed = needed_of(turns, i, s, stage);
      if (needed <= turn.needed) continue;
      turn.stage = stage;
      turn.needed = needed;
    }
    out.push_back(turn);
  }
  return out;
}

Bytes training_state(const RlScenario& s) {
  Bytes sum;
  for (const Turn& turn : turns_of(s)) {
    if (!turn.trained) continue;
    MemoryBreakdown fullest;
    for (int stage = 0; stage < turn.job.parallelism.pipeline; ++stage) {
      const MemoryBreakdown peak = peak_of(turn, s.training.stack, stage);
      if (peak.needed() > fullest.needed()) fullest = peak;
    }
    sum += s.rl.training_stays() ? kept_of(fullest) : fullest.weights + fullest.optimiser;
  }
  return sum;
}

RlFlops rl_flops(const RlScenario& s, const Batch& batch) {
  TrainingJob actor = s.training.job;
  actor.batch = batch;
  const double updates = s.rl.updates;
  RlFlops out{
      .training = updates * s.rl.epochs * step_flops(actor).full, .scores = {}, .critic = {}};
  if (s.rl.critic) {
    TrainingJob critic = s.rl.critic->job;
    critic.batch = batch;
    out.critic = updates * s.rl.epochs * step_flops(critic).full;
  }
  const double own = s.rl.algorithm->mismatched ? 1 : 0;  // the actor's
  const double passes = own + (s.rl.reference ? s.rl.reference_passes() : 0);
  if (passes > 0) out.scores += updates * passes * forward_flops(s.training.job, batch);
  if (s.rl.teacher) out.scores += updates * forward_flops(s.rl.teacher->job, batch);
  return out;
}

}  // namespace lockstep
