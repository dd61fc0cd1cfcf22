/// Reads a trace of the PyTorch profiler (Kineto's Chrome trace) of one rank: kernels with their
/// durations, and NCCL's with what they call.
///
/// Such a trace alone has times but no dependencies (pytorch/merge_pytorch.hpp takes them from the
/// execution trace beside it). They are inferred, and what is left stays as it was
/// recorded:
/// - kernels of a stream run in their order;
/// - communication waits for the computing kernel that ended last before it;
/// - a computing kernel waits for the communication that ended last between the stream's kernel
///   before it and its start;
/// - the rest of the gap before a kernel is the host's, and is a delay of the same length: of the
///   first kernel of a stream from the start of the recording, or of the step that it was cut to;
///   so is what a step has left after its last kernel.
/// What other communication had ended before a node began, hidden behind kernels, it may have
/// waited for or not (RankTrace::possible_waits).
/// A trace without communication takes exactly as long as it was recorded to. The wait of a
/// collective for the last of its ranks is part of its recorded duration, so that duration is not
/// used where the call is known.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "sim/trace/pytorch/kineto_recording.hpp"
#include "sim/trace/trace_builder.hpp"

namespace lockstep {

/// The rank is that of the trace's "distributedInfo", else `rank`. Of several ProfilerSteps the
/// median one is taken (pytorch/profiler_steps.hpp). Throws InputError for a text that is no such
/// trace, and where neither gives the rank.
RankTrace read_kineto(const std::string& file, std::optional<int> rank, std::string_view text);

/// read_kineto() in two steps: the rank that the recording names, else `rank`; and its trace.
int kineto_rank(const KinetoRecording& recording, std::optional<int> rank);
RankTrace trace_of_kineto(const KinetoRecording& recording, int rank);

}  // namespace lockstep
