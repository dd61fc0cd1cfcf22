/// Makes the numbers of a stack out of what it does: bytes that its kernels read and write, kernels
/// that its host launches, formats, what overlaps. For software that nobody has measured this is
/// all there is; of software that was, it says what a change of a feature adds or saves.
#pragma once

#include "models/base/units.hpp"
#include "models/spec/software.hpp"
#include "models/spec/stack_switches.hpp"

namespace lockstep {

/// Bytes that a kernel, or a chain of them, moves per element each way.
struct TwoWays {
  double forward = 0, backward = 0;
};
/// Kernels each way.
using KernelCounts = TwoWays;

/// Bytes per element of kernels of two kinds: those that HBM limits, and those that move an element
/// at a time (casts, broadcasts, strides, rows by index, sums over rows), which the SMs limit:
/// MemoryConstants::narrow_bandwidth.
struct BytesByLimit {
  double streamed = 0, narrow = 0;
};
struct BytesBothWays {
  BytesByLimit forward, backward;
};

/// Counts from the code of public frameworks, and how far their kernels are from streaming
/// (models/presets/operators). Bytes are of 16-bit activations, per element of the tensor named: T
/// tokens on the rank, h hidden, f feed-forward.
struct OperatorCosts {
  // Per T h.
  BytesBothWays norm_eager;                          ///< RMSNorm in 32 bit, operator by operator
  BytesBothWays layer_norm;                          ///< LayerNorm in CUDA
  TwoWays norm_fused;                                ///< of one norm
  TwoWays residual, residual_dropout;                ///< of one sum
  TwoWays residual_compiled;                         ///< of one sum, fused with the next norm
  TwoWays repeated_heads;                            ///< keys and values written out
  double qkv_gradients = 12, gate_up_gradients = 6;  ///< sums of what separate products give back
  double qkv_split = 4;  ///< an element of Q, K or V, whose gradients one product takes together
  double bias_gradient = 2;                   ///< of a bias, per element of its product's output
  double rotary_fused = 4;                    ///< Q or K element, each way
  BytesByLimit rotary_eager, rotary_complex;  ///< the same
  TwoWays gated_fused, gated_eager;           ///< activation, per T f
  TwoWays plain;                              ///< the same without a gate, compiled
  BytesBothWays plain_eager;
  // Per logit, both ways.
  BytesByLimit loss_eager;
  double loss_compiled = 18, loss_fused = 10, loss_parallel = 50, loss_parallel_fused = 42;
  // Of kernels that are not streaming: time over that of the same bytes at HBM's usual efficiency.
  double norm_backward_library_cost = 1.6, norm_backward_cost = 3;
  // Per weight and micro batch, beside the product's own write of 2 bytes.
  double accumulate_fused_fp32 = 6, accumulate_fused_bf16 = 2, accumulate_fp32 = 10,
         accumulate_bf16 = 6, accumulate_fsdp1 = 4, accumulate_fsdp2 = 6;
  // Per parameter and step.
  double optimiser_fused = 36, optimiser_multi_tensor = 44, optimiser_loop = 100;
  double int8_saved = 12, bf16_saved = 20;  ///< of the step's traffic, by short states
  // Kernels of a layer.
  KernelCounts kernels_product, kernels_attention, kernels_norm_eager, kernels_rotary_eager,
      kernels_gated_eager, kernels_repeat;
  // Host time.
  Seconds launch_eager = microseconds(31), launch_library = microseconds(10),
          launch_program = microseconds(3), launch_graph = microseconds(10);
  Seconds expert_host_layer = microseconds(1200), expert_host_expert = microseconds(20);
  Seconds expert_loop_host = microseconds(500);  ///< more per expert where they go one by one
  // Common to all stacks.
  double level = 1, level_alone = 1, sm_share = 0.3, tensor_exposed = 0.5, grouped_slowdown = 1.15,
         permute_bytes = 8;
  BytesByLimit permute_eager;
  /// The last bias of experts, per element of their results: as an operator of its own, and as
  /// Megatron-Core adds it, expert by expert and times the router's probabilities of 32 bits.
  TwoWays expert_bias{4, 2}, expert_bias_library{28, 40};
};

/// What of a job and its machine decides which operators run.
struct ComposedFor {
  bool gated = true;           ///< a gated MLP; models with one have RMSNorm, others LayerNorm
  bool grouped_heads = true;   ///< fewer key-value heads than heads
  double host_slowness = 1.0;  ///< of the processors, over those on which the counts were timed
  /// Time of narrow traffic over that of as many streamed bytes; that of H100.
  double narrow_slowness = 1.33;
};

/// Sets what of a stack follows from its switches: traffic, kernels and their host time, formats,
/// overlap, memory. Leaves what no switch says: the attention kernel, buckets, placement.
/// Sources: the preset `costs` was read from, value by value.
void compose(const StackSwitches& switches, const OperatorCosts& costs, const ComposedFor& job,
             StackSpec& stack);

/// Changes a stack by what composing it for `after` instead of `before` changes: traffic and
/// kernels by the difference, formats and flags to the new ones. What is the same in both stays
/// what it is, be it fitted or written down.
void shift(const StackSpec& before, const StackSpec& after, StackSpec& stack);

}  // namespace lockstep
