/// Profilers' recordings of a job's ranks, cut to one step.
#pragma once

#include <string>
#include <vector>

#include "sim/trace/pytorch/kineto_recording.hpp"
#include "sim/trace/pytorch/profiler_steps.hpp"

namespace lockstep {

struct StepRecordings {
  std::vector<KinetoRecording> recordings;
  std::vector<int> ranks;  ///< by recording
  std::string note;        ///< which step it is, in a sentence
  std::string rank_note;   ///< whose ranks they are, of several exports of Nsight Systems
};

/// Reads Kineto's traces, one file a rank, plain or .gz, and SQLite exports of Nsight Systems, each
/// GPU of which is a rank (place_nsys_ranks()). `with_host`: what the host did too; else time
/// begins and ends with the GPU's, and of the host it is known which operators launched each
/// kernel. Throws InputError for what is no such trace, for one without kernels, and for a rank
/// that is there twice.
StepRecordings read_step_recordings(const std::vector<std::string>& files, const StepRequest& step,
                                    bool with_host);

}  // namespace lockstep
