/// The time of a kernel that only moves bytes through HBM: norms, activations, residuals, optimiser.
#pragma once

#include "models/hardware.hpp"
#include "models/units.hpp"

namespace lockstep {

/// Time of one kernel of `traffic` bytes read and written, one launch inside a CUDA graph:
///
///     T = (t0^p + (traffic / (e HBM))^p)^(1/p),   p = 4
///
/// the shortest kernel for small tensors, bandwidth for large ones. Constants: GpuSpec::memory.
/// Whether a tensor stays in L2 between kernels is left out. Requires traffic >= 0; 0 bytes is no
/// kernel and takes no time.
Seconds memory_bound_time(Bytes traffic, const GpuSpec& gpu);

}  // namespace lockstep
