/// What a GPU did in a recorded step, instant by instant: the counterpart of a simulated step's
/// buckets.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sim/measured/kernel_kinds.hpp"
#include "sim/trace/pytorch/kineto_recording.hpp"

namespace lockstep {

/// Where an instant of a recorded step goes. Computing hides communication, as it does in a
/// simulated step; of several kernels at once the one of the lowest kind here counts.
enum class RecordedPart : std::uint8_t {
  product,   ///< matrix products and attention
  memory,    ///< memory-bound kernels, and those whose name says nothing
  exchange,  ///< kernels of NCCL alone, waits for other ranks in them
  copy,      ///< copies alone
  idle,      ///< nothing: the GPU waits for the host
};
constexpr std::size_t kRecordedParts = 5;

/// Seconds of one rank; they add up to its step.
struct RecordedRank {
  int rank = 0;
  double step_s = 0;
  std::array<double, kRecordedParts> seconds{};
  /// Of `exchange`, by what the kernels call: "all-reduce", or "not told".
  std::map<std::string, double, std::less<>> exposed_by_call;
  /// Of each event of the GPU the instants that count as its own; what is left of the step is idle.
  std::vector<double> event_seconds;
  std::size_t kernels = 0;
  [[nodiscard]] double of(RecordedPart part) const {
    return seconds[static_cast<std::size_t>(part)];
  }
  /// Time that no other rank can be blamed for.
  [[nodiscard]] double own_s() const { return step_s - of(RecordedPart::exchange); }
};

/// Where an instant goes in which this event alone runs.
RecordedPart recorded_part(const KinetoRecording& recording,
                           const KinetoRecording::GpuEvent& event);

/// Of a recording that is one step (cut_to_step()).
RecordedRank recorded_rank(const KinetoRecording& recording, int rank);

/// What a kernel of NCCL says that it calls, or the range around its launch; null: nothing does.
const NcclCallText* recorded_call(const KinetoRecording& recording,
                                  const KinetoRecording::GpuEvent& event);

/// "all-reduce" of the texts "allreduce", "_allgather_base", ...; "not told" where it is empty.
std::string_view call_name(const NcclCallText& call);

}  // namespace lockstep
