/// The blocks of a layer: attention, and an MLP or experts.
#pragma once

#include "models/layer/recorder.hpp"

namespace lockstep {

/// What runs again in the backward pass.
struct Repeated {
  bool collectives, core, norm, activation, latent_up, mlp_up, mlp_down, projection;
  double products;  ///< share of those that are not named here
};
Repeated repeated(const TrainingJob& job, const StackSpec& stack);

/// Products around attention, attention itself, and the exchanges of tensor- and context-parallel
/// ranks.
void attention_block(Recorder& record, const WorkloadContext& c, const Widths& w, LayerKind kind,
                     const Repeated& again);
/// A Mamba-2 mixer; the state of a head stays on its tensor-parallel rank.
void mamba_block(Recorder& record, const WorkloadContext& c, const Widths& w,
                 const Repeated& again);
/// Two products (three matrices where gated) of inner width `ffn`, all tensor-parallel ranks
/// together, and the activation between them.
void mlp_block(Recorder& record, const WorkloadContext& c, const Widths& w, double ffn,
               const Repeated& again);
/// Router, dispatch, the experts' products, combine, and the MLP that all tokens share. The experts
/// of a rank share its rows evenly; the fullest rank has as many more as expert_load() says.
void expert_block(Recorder& record, const WorkloadContext& c, const Widths& w,
                  const Repeated& again);

}  // namespace lockstep
