/// What the models of a step take of memory; and of arithmetic where it generates nothing: the
/// actor, and what stands beside it frozen, the reference of preference optimisation or the teacher
/// of distillation.
#pragma once

#include <string_view>
#include <vector>

#include "models/base/units.hpp"
#include "models/layer/memory.hpp"
#include "sim/scenario/rl_spec.hpp"

namespace lockstep {

/// A model that scores with the words that go in: its job has no vocabulary, as its time wants it.
/// Of weights, not of time.
TrainingJob with_input_table(TrainingJob scorer, int words);

/// Models whose weights lie on the trainers' GPUs beside the actor's through the step, where
/// nothing is generated. An actor with adapters is its own reference, without them
/// (github:huggingface/trl:trl/trainer/dpo_trainer.py, null_ref_context).
std::vector<TransformerShape> frozen_models(const RlScenario& scenario);

/// Whether a GPU has room for training, and for the frozen models in the actor's layout beside it.
/// Where responses are generated it is training's alone: others have their turns, rl_turns().
MemoryVerdict rl_memory(const RlScenario& scenario);
/// Of MemoryBreakdown::weights on the fullest stage, those of frozen models.
Bytes frozen_weights(const RlScenario& scenario);

/// What a GPU holds while one model of a step that generates works, on its fullest stage.
struct RlTurn {
  std::string_view key;   ///< of "rl"; empty: the actor's training
  std::string_view what;  ///< "the critic's training"
  int stage = 0;
  Bytes needed;
};
/// Training of the actor and of the critic, and the forward pass of each frozen model with its
/// weights in 16 bit, all in the actor's layout. Where RlSpec::training_stays() each has what the
/// others' training keeps beside it: weights, gradients and optimiser. Else it is alone. None where
/// nothing is generated.
std::vector<RlTurn> rl_turns(const RlScenario& scenario);

/// What training keeps on a GPU through a rollout, or sends to the host and back: weights and
/// optimiser of actor and critic, and gradients where they stay. Each on its fullest stage.
Bytes training_state(const RlScenario& scenario);

/// Model FLOP of a step over all GPUs, the whole attention square: what is repeated is left out.
struct RlFlops {
  Flops training;  ///< the actor, forward and backward, each update and epoch
  Flops scores;    ///< reference, teacher: a third of as much over the same samples; thrice that
                   ///< where the actor and its reference score mismatched ones too (KTO)
  Flops critic;    ///< forward and backward, each update and epoch
};
/// Of a policy of P weights that a token meets and of T tokens, chosen and rejected responses with
/// their prompts: training 6 P T and scores 2 P T (Rafailov et al. 2023, arXiv:2305.18290, equation
/// 7), and attention as step_flops() counts it. Of distillation 2 P' T, P' the teacher's. `batch`
/// is that of one update, as it was simulated.
RlFlops rl_flops(const RlScenario& scenario, const Batch& batch);

}  // namespace lockstep
