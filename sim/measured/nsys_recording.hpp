/// What Nsight Systems recorded of each GPU, as recordings that are replayed like those of the
/// PyTorch profiler (sim/trace/pytorch/kineto_recording.hpp).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/trace/pytorch/kineto_recording.hpp"

namespace lockstep {

/// Of an SQLite export: one recording for each GPU of a process that ran kernels, by the GPU's
/// number. Kernels, copies, sets of memory and whole CUDA graphs on their streams, with the time of
/// their launch; kernels of NCCL do not say what they call. Of several GPUs the recordings are
/// ranks 0 to n - 1 of n. NVTX ranges of the process that mark steps are its ProfilerSteps. Throws
/// InputError for a file that is no such database, and where it has no kernel.
/// `with_launchers`: which ranges kernels were launched in (find_launchers()), of which those of
/// PyTorch's emit_nvtx(record_shapes=True) are operators with shapes and autograd's numbers.
std::vector<KinetoRecording> read_nsys_recordings(const std::string& file, bool with_launchers);

/// Whether an NVTX range marks a step: "step 12", "Iteration=3", "ProfilerStep#5", "train_step".
bool marks_step(std::string_view range);

}  // namespace lockstep
