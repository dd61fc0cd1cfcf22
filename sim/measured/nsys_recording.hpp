/// What Nsight Systems recorded of each GPU, as recordings that are replayed like those of the
/// PyTorch profiler (sim/trace/pytorch/kineto_recording.hpp).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/trace/pytorch/kineto_recording.hpp"

namespace lockstep {

/// What is kept of the host: nothing; which ranges kernels were launched in (find_launchers()), of
/// which those of PyTorch's emit_nvtx(record_shapes=True) are operators with shapes and autograd's
/// numbers; or that, the ranges themselves and the calls of CUDA's runtime, from the first of which
/// time counts then.
enum class NsysHost : std::uint8_t { none, launchers, all };

/// A GPU of a process that ran kernels.
struct NsysGpu {
  KinetoRecording recording;    ///< without a rank (nsys_ranks.hpp gives it one)
  std::int64_t process = 0;     ///< as the export numbers it
  std::optional<int> mpi_rank;  ///< of the process
};

/// An SQLite export, and what it says of ranks.
struct NsysExport {
  std::string file;
  std::vector<NsysGpu> gpus;  ///< by the machine's number of the GPU, then process
  /// The rank that whoever started Nsight Systems gave it, and of how many.
  std::optional<int> launched_as, launched_of;
};

/// Kernels, copies, sets of memory and whole CUDA graphs on their streams, with the time of their
/// launch; kernels of NCCL do not say what they call. NVTX ranges of a process that mark steps are
/// its ProfilerSteps. Throws InputError for a file that is no such database, and where it has no
/// kernel.
NsysExport read_nsys_export(const std::string& file, NsysHost host);

/// Of a single export: its GPUs with their ranks.
std::vector<KinetoRecording> read_nsys_recordings(const std::string& file, NsysHost host);

/// Whether an NVTX range marks a step: "step 12", "Iteration=3", "ProfilerStep#5", "train_step".
bool marks_step(std::string_view range);

}  // namespace lockstep
