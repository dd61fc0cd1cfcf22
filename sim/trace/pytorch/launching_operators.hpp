/// Which operators of the host a kernel was launched in.
#pragma once

#include "sim/trace/pytorch/kineto_recording.hpp"

namespace lockstep {

/// Fills in KinetoRecording::launchers and who launched each event of the GPU, of a recording with
/// the host's part that nobody has cut: operators and ranges around the call with the kernel's
/// "correlation" on its thread, else those around the operator with its "External id".
void find_launchers(KinetoRecording& recording);

}  // namespace lockstep
