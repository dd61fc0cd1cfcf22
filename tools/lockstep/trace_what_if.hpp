/// What-if on a trace: the same step on another GPU.
#pragma once

#include "models/hardware.hpp"
#include "sim/trace/trace.hpp"

namespace lockstep {

/// Gives every recorded duration the length that it has on another GPU. Products whose FLOPs and
/// bytes the trace knows (execution traces of PyTorch, Chakra's num_ops and tensor_size) change as
/// the roofline of the dense BF16 peak (FP16, where a GPU has no BF16) and the memory bandwidth
/// does. Of the others the kernel's name says what it does: products and attention in the ratio of
/// the peaks, memory-bound kernels and copies on the card in that of the memory bandwidths; kernels
/// whose name says nothing count as products, or as memory-bound where the trace knows their
/// operator and it is none. Copies to the host (memory nodes) in the ratio of PCIe. The host keeps
/// its time. How well either GPU uses its peak is not in it.
void scale_to_gpu(Trace& trace, const GpuSpec& recorded, const GpuSpec& wanted);

}  // namespace lockstep
