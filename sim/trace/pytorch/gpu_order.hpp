/// What kernels of different streams wait for, out of an execution trace and a Kineto trace.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/trace/pytorch/kernel_links.hpp"

namespace lockstep {

/// When kernels were launched, and the last that a stream had been given at a time.
class LaunchTimes {
 public:
  LaunchTimes(const KinetoRecording& recording, const KernelLinks& links);
  /// The start of its launch; its own where that is not in the trace.
  [[nodiscard]] std::int64_t of(std::uint32_t event) const { return times_[event]; }
  /// Events of the GPU in the order of their launches.
  [[nodiscard]] std::span<const std::uint32_t> order() const { return order_; }
  /// The last event of the stream that was launched before `time`, or the first at `time` or
  /// later; KernelLinks::kNone if there is none.
  [[nodiscard]] std::uint32_t last_before(std::size_t stream, std::int64_t time) const;
  [[nodiscard]] std::uint32_t first_from(std::size_t stream, std::int64_t time) const;

 private:
  std::vector<std::int64_t> times_;
  std::vector<std::uint32_t> order_;
  std::vector<std::vector<std::uint32_t>> of_stream_;  ///< by launch
};

/// One event of the GPU waits for another.
struct GpuDependency {
  std::uint32_t event = 0, before = 0;
};
struct GpuOrder {
  std::vector<GpuDependency> list;  ///< by event; between streams only
  std::size_t inferred = 0;         ///< of them by times, since nothing says
};

/// Three sources, none of them an order of one stream:
/// - storages: a kernel waits for the last that wrote what its operator reads or writes, and one
///   that writes for the last that read it. What communicates reads and writes all of its tensors.
/// - events: the first kernel that its stream is given after a cudaStreamWaitEvent waits for the
///   last one before the event's record, where Kineto recorded these (enable_cuda_sync_events).
/// - else times, as in read_kineto.hpp: communication that waits for nothing by the above waits for
///   the computing kernel that ended last before it; a computing kernel whose operator has no
///   tensors on the GPU waits for communication that ended since the kernel before it.
GpuOrder gpu_order(const ExecutionTrace& trace, const KinetoRecording& recording,
                   const KernelLinks& links, const LaunchTimes& launches);

}  // namespace lockstep
