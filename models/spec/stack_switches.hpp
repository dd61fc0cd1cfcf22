/// What a training software stack does between the big products, as its users would say it: which
/// of its kernels are fused, what its optimiser keeps, how its host launches. A preset says it of
/// its software, a scenario changes it; models/spec/compose_stack.hpp makes numbers of it.
#pragma once

#include <cstdint>

namespace lockstep {

/// Whose elementwise kernels run where they are fused.
enum class KernelLibrary : std::uint8_t {
  pytorch,  ///< ATen's own
  triton,   ///< written in Triton: Liger, Unsloth
  library,  ///< written in CUDA: Transformer Engine, Apex, llm.c
};
enum class CudaGraphs : std::uint8_t { none, layer, full };
enum class OptimiserKernels : std::uint8_t {
  fused,         ///< one kernel over all states of many tensors
  multi_tensor,  ///< Apex and its descendants: fused, with casts and copies of their own
  loop,          ///< an operation at a time, over each tensor or lists of them
};
enum class StateFormat : std::uint8_t { fp32, bf16, int8 };
enum class GradientFormat : std::uint8_t { fp32, bf16 };
/// What gradients go through on their way to where they are sharded.
enum class ShardingUnit : std::uint8_t {
  bucket,  ///< buckets of gradients, or none
  fsdp1,   ///< one flat tensor for each block
  fsdp2,   ///< the tensors of a block, copied in and out
};
enum class PipelineTransfers : std::uint8_t {
  batched,       ///< sends and receives of a group end together
  asynchronous,  ///< each on its own, beside compute
  blocking,      ///< neighbours in turn
};
enum class ExpertProducts : std::uint8_t { grouped, loop };
/// How the host issues kernels.
enum class HostClass : std::uint8_t {
  eager,    ///< an operator at a time through Python, with hooks
  library,  ///< modules that issue several kernels each
  program,  ///< a compiled program that issues them by itself: XLA, C
};

struct StackSwitches {
  bool fused_norm = false;
  bool fused_rope = false;
  bool complex_rope = false;  ///< rotary embedding as a product of complex numbers, in 32 bit
  bool fused_swiglu = false;
  bool fused_bias_dropout = false;  ///< bias, dropout and residual sum in one kernel
  bool fused_cross_entropy = false;
  bool chunked_cross_entropy = false;  ///< with the output projection, piece by piece
  bool vocab_parallel_loss = false;    ///< Megatron's, with its all-reduces
  bool merged_qkv = false;             ///< one product, so no gradients of inputs to sum
  bool merged_gate_up = false;
  bool repeats_kv_heads = false;  ///< grouped heads are written out before attention
  bool torch_compile = false;     ///< of every block: norms, rotary, SwiGLU and sums are fused
  bool gradient_accumulation_fusion = false;  ///< weight gradients are added in the product
  bool tp_overlap = false;                    ///< tensor-parallel collectives beside products
  KernelLibrary kernels = KernelLibrary::pytorch;
  CudaGraphs cuda_graphs = CudaGraphs::none;
  OptimiserKernels optimiser = OptimiserKernels::fused;
  StateFormat optimiser_states = StateFormat::fp32;
  bool master_weights = true;                            ///< a 32-bit copy of the weights
  GradientFormat gradients = GradientFormat::fp32;       ///< as accumulated
  GradientFormat reduced_format = GradientFormat::fp32;  ///< as reduced between replicas
  ShardingUnit sharding_unit = ShardingUnit::bucket;
  PipelineTransfers pipeline_transfers = PipelineTransfers::batched;
  ExpertProducts expert_products = ExpertProducts::grouped;
  HostClass host = HostClass::eager;

  friend bool operator==(const StackSwitches&, const StackSwitches&) = default;
};

}  // namespace lockstep
