/// The time of a kernel that only moves bytes through HBM: norms, activations, residuals,
/// optimiser.
#pragma once

#include "models/base/units.hpp"
#include "models/spec/hardware.hpp"

namespace lockstep {

/// Time of one kernel of `traffic` bytes read and written, one launch inside a CUDA graph:
///
///     T = t0 + traffic / (e HBM)
///
/// so small tensors do not reach the bandwidth. Fused norms and residual additions on A100, GH200,
/// H200, GB200 and GB300 follow the sum more closely than the maximum of both terms.
/// Constants: GpuSpec::memory. That a tensor may stay in L2 between kernels is left out.
/// Times the ratio that gpu.profile has for it, if there is one.
/// Requires traffic >= 0; 0 bytes is no kernel and takes no time.
Seconds memory_bound_time(Bytes traffic, const GpuSpec& gpu);

}  // namespace lockstep
