/// The host's part of a rank, cut where it launches kernels and where it waits for them.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/trace/pytorch/gpu_order.hpp"

namespace lockstep {

/// A stretch of one thread of the host. Times are the recording's.
struct HostPiece {
  static constexpr std::uint32_t kNone = KernelLinks::kNone;

  std::int64_t start = 0, end = 0;
  std::uint32_t previous = kNone;  ///< piece of the same thread
  std::uint32_t other = kNone;     ///< piece of another thread that lets this one go on
  std::uint32_t node = kNone;      ///< operator that it ends in: in ExecutionTrace::operators
  std::uint32_t name = kNone;      ///< without one: in KinetoRecording::names
  std::vector<std::uint32_t> gpu;  ///< events of the GPU that a synchronisation waits for
};

struct HostPieces {
  std::vector<HostPiece> list;        ///< thread by thread, in order
  std::vector<std::uint32_t> launch;  ///< by event of the GPU: its piece, or kNone
};

/// A piece ends with the start of a launch, which the kernel waits for. A synchronisation waits for
/// the last kernel that its stream had been given (of the last launch, where Kineto did not record
/// the stream), a device's for all streams', an event's for the last before the record, else for
/// what ended last in it; its own time is what is left after that. A thread that did nothing for a
/// millisecond, or begins, goes on after what another thread did last before (the rule and the
/// millisecond are those of chakra_trace_link, enforce_inter_thread_order), and the rest of the gap
/// is the host's.
HostPieces host_pieces(const KinetoRecording& recording, const KernelLinks& links,
                       const LaunchTimes& launches);

}  // namespace lockstep
