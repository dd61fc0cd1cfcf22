/// One rank out of the execution trace of PyTorch and the Kineto trace beside it, recorded over the
/// same steps: operators with tensors from the one, kernels and times from the other.
///
/// - The host's threads run in their order, from launch to launch (host_pieces.hpp); a kernel waits
///   for its launch, and a synchronisation of the host for kernels.
/// - Kernels of a stream run in their order; those of different streams wait for each other by the
///   tensors of their operators and by recorded events (gpu_order.hpp).
/// - What is left of a recorded gap is a delay, so that the trace of one rank takes as long as the
///   recording. A dependency that the recording contradicts is left out and counted.
/// - Kernels know the FLOPs and bytes of their operator, for what-ifs on another GPU; of several
///   kernels of one operator the longest does.
/// - Collectives and messages are Kineto's, completed by the operator (record_param_comms) and the
///   ranks of "process_group:init". Their recorded duration is not used: it holds the wait.
#pragma once

#include "sim/trace/pytorch/execution_trace.hpp"
#include "sim/trace/pytorch/kineto_recording.hpp"
#include "sim/trace/trace_builder.hpp"

namespace lockstep {

/// `recording` with the host's part. Throws InputError where no kernel has an operator, and for a
/// kernel of NCCL of which neither file says what it calls.
RankTrace merge_pytorch(const ExecutionTrace& trace, const KinetoRecording& recording, int rank);

/// An execution trace has neither kernels nor times: says what to record beside it.
[[noreturn]] void fail_without_kineto(const std::string& file);

}  // namespace lockstep
