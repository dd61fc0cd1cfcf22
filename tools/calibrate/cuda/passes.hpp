/// Memory-bound kernels, launches and copies.
#pragma once

#include "tools/calibrate/cuda/bench.hpp"

namespace lockstep {

/// Runs the kernel once on fresh buffers, checks rows of its result against reference_row(), and
/// times it.
Samples measure_memory(Bench& bench, const MemoryTask& task);

/// Empty kernels: time from one to the next. Busy ones: the gap between them, which is what many
/// take longer than one that works as long as all of them together.
Samples measure_launch(Bench& bench, const LaunchTask& task);

/// One copy after the other, pinned memory.
Samples measure_copy(Bench& bench, const CopyTask& task);

}  // namespace lockstep
