/// When ranks began, where only their own clocks tell: all ranks of a collective leave it together.
#pragma once

#include <span>
#include <string>

#include "sim/trace/pytorch/kineto_recording.hpp"

namespace lockstep {

/// Lets each of several recordings of one step begin as much later than the first one as the ends
/// of its communication say, the k-th of each rank taken for one call, and says so in a sentence.
/// Changes nothing and says nothing where they do not agree: ranks with other calls than others
/// (of several process groups), or without any.
std::string align_starts(std::span<KinetoRecording> recordings);

}  // namespace lockstep
