/// How fast the host of a recorded step launches kernels, and which of them it launches as graphs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "sim/trace/pytorch/kineto_recording.hpp"

namespace lockstep {

struct RecordedHost {
  std::size_t launches = 0;       ///< calls of the host that launched kernels; 0: none was recorded
  std::size_t kernels = 0;        ///< that they launched, NCCL's apart
  std::size_t graphs = 0;         ///< of the calls, launches of CUDA graphs
  std::size_t graph_kernels = 0;  ///< of the kernels, those of graphs
  /// From one launch to the next, where the host ran freely: the mean without the longest fiftieth
  /// (data loading, garbage collection). Left out are intervals with a synchronisation in them, and
  /// those in which the GPU's queue was full, so that the launch waited.
  double interval_s = 0;
  std::size_t intervals = 0;  ///< of which that is the mean; 0: too few to tell
};

/// By how much GpuEvent::launch is later than the other times of a recording, picoseconds: by the
/// start of the step that it was cut to (cut_to_step()). Calls of before that are all at its start.
std::int64_t launch_offset(const KinetoRecording& recording);

/// Of recordings with the host's part, all ranks together.
RecordedHost recorded_host(std::span<const KinetoRecording> recordings);

}  // namespace lockstep
