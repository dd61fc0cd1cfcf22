/// Reads a trace of the PyTorch profiler (Kineto's Chrome trace) of one rank: kernels with their
/// durations, and NCCL's with what they call.
///
/// Such a trace has times but no dependencies. They are inferred, and what is left stays as it was
/// recorded:
/// - kernels of a stream run in their order;
/// - communication waits for the computing kernel that ended last before it;
/// - a computing kernel waits for the communication that ended last between the stream's kernel
///   before it and its start;
/// - the rest of the gap before a kernel is the host's, and is a delay of the same length.
/// The wait of a collective for the last of its ranks is part of its recorded duration, so that
/// duration is not used.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "sim/trace/trace_builder.hpp"

namespace lockstep {

/// The rank is that of the trace's "distributedInfo", else `rank`. Throws InputError for a text
/// that is no such trace, for a kernel of NCCL without its collective's name, size or ranks
/// (PyTorch before 2.2), and where neither gives the rank.
RankTrace read_kineto(const std::string& file, std::optional<int> rank, std::string_view text);

}  // namespace lockstep
