/// FLOPs of a training step in the conventions that publications use.
#pragma once

#include "models/base/units.hpp"
#include "models/spec/hardware.hpp"
#include "models/spec/transformer.hpp"

namespace lockstep {

/// All of one step, over all GPUs. A multiply-add counts as 2.
struct StepFlops {
  Flops causal;    ///< model FLOP, causal attention (half the square)
  Flops full;      ///< model FLOP, the whole attention square (PaLM, Megatron-LM 2022 on)
  Flops hardware;  ///< `full` plus what recomputation repeats
};

/// The recurrence of Mamba-2 counts three times scan_flops() in both conventions.
/// Per token: 6 P for the matrix products, P = weights used in them (output projection in; input
/// embedding, positions and norms out; of experts those that a token goes to), plus 12 l a d s for
/// attention, halved when causal; windowed attention meets the window alone, and attention inside
/// samples Batch::sample_tokens in place of s. Experts that drop a token do no work for it. Frozen
/// weights have no gradient: 4 P for them, and 6 for those of adapters; 2 P, and a third of the
/// attention, where the backward pass does not come by.
/// Sources: Chowdhery et al. 2022, arXiv:2204.02311, appendix B; Korthikanti et al. 2022,
/// arXiv:2205.05198, equations 7 and 8 (which this equals for a model with 4 h wide MLPs).
/// `attention` decides what selective recomputation of its core repeats: nothing where the kernel
/// is fused, whose backward pass does it anyway and counts as 2 x forward in both conventions.
StepFlops step_flops(const TrainingJob& job, AttentionKernel attention = AttentionKernel::unfused);

}  // namespace lockstep
