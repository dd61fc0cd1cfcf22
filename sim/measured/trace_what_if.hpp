/// What-if on a trace: the same step on another GPU.
#pragma once

#include "models/spec/hardware.hpp"
#include "sim/trace/trace.hpp"

namespace lockstep {

/// What bounds the kernels of a trace, over all ranks.
struct KernelBounds {
  Seconds launch;  ///< the part that a kernel of no work takes as well
  Seconds gpu;     ///< the rest, which the card's rates set
};
/// Before and after.
struct WhatIf {
  KernelBounds recorded, wanted;
  Seconds untold;  ///< of the recorded time: neither name nor sizes say what is done, so products
};

/// Gives every recorded duration the length that it has on another GPU. A kernel has a floor,
/// that of the shortest one of its kind on its card (the presets' `launch` of products, attention
/// and memory-bound kernels): up to it a duration changes as the floors do, and what is above it
/// as the rates do that large kernels reach on either card: of products the dense BF16 peak
/// (FP16, where a GPU has no BF16) times what its measured law makes of it under a lasting load,
/// else the memory bandwidth times what streams make of it. Products whose FLOPs and bytes the
/// trace knows (execution traces of PyTorch, Chakra's num_ops and tensor_size) change as the
/// roofline of both. Of the others the kernel's name says what it does: products and attention in
/// the ratio of the first, memory-bound kernels and copies on the card in that of the second;
/// kernels whose name says nothing count as products, or as memory-bound where the trace knows
/// their operator and it is none. Copies to the host (memory nodes) in the ratio of PCIe, without
/// a floor. The host keeps its time.
WhatIf scale_to_gpu(Trace& trace, const GpuSpec& recorded, const GpuSpec& wanted);

}  // namespace lockstep
