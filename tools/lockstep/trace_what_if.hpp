/// What-if on a trace: the same step on another GPU.
#pragma once

#include "models/hardware.hpp"
#include "sim/trace/trace.hpp"

namespace lockstep {

/// Gives every recorded duration the length that it has on another GPU, by what the kernel's name
/// says that it does: products and attention in the ratio of the dense BF16 peaks, memory-bound
/// kernels and copies on the card in that of the memory bandwidths, copies to the host (Chakra's
/// memory nodes) in that of PCIe. Kernels whose name says nothing count as products. The host keeps
/// its time. How well either GPU uses its peak is not in it.
void scale_to_gpu(Trace& trace, const GpuSpec& recorded, const GpuSpec& wanted);

}  // namespace lockstep
