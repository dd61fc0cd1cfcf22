/// Cuts recordings to one training step, by the ProfilerStep marks that torch.profiler leaves.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/trace/pytorch/kineto_recording.hpp"

namespace lockstep {

/// A marked step. Work of the GPU belongs to the step in which the host launched it, however late
/// it runs; so a step begins when the host has begun it and the work of earlier steps is done, and
/// ends when the host and its own work are done. Lengths of steps in a row add up to the whole.
struct ProfilerStep {
  std::int64_t number = 0;
  std::int64_t host_start = 0, host_end = 0;  ///< of the mark
  std::int64_t start = 0, end = 0;
  std::int64_t first_work = 0, last_work = 0;  ///< of the GPU: its first start, its last end
  [[nodiscard]] std::int64_t length() const { return end - start; }
};

/// Those that launched work, by start.
std::vector<ProfilerStep> profiler_steps(const KinetoRecording& recording);

/// What is asked for: else the median step.
struct StepRequest {
  bool all = false;                    ///< the whole recording as one step
  std::optional<std::int64_t> number;  ///< that of the mark
};

/// Cuts the recordings of a job's ranks to one step that all of them have, and says which in a
/// sentence: that of the number, else the median by length (that of the slowest rank). The first
/// and the last one count only if they are within a tenth of the median: a recording may have begun
/// or ended inside of them. Without marks, nothing is cut, and the sentence says that. Throws
/// InputError for a number that not every rank has.
std::string cut_to_step(std::span<KinetoRecording> recordings, const StepRequest& wanted);

}  // namespace lockstep
