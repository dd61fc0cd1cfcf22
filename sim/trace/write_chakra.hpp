/// Writes a rank of a trace as a Chakra execution trace, for ASTRA-sim and whoever reads the
/// schema.
#pragma once

#include <string>

#include "sim/trace/trace.hpp"

namespace lockstep {

/// The protobuf form. The first node, number 0, is PyTorch's "process_group:init" with the ranks of
/// each group; node n of the rank has the number n + 1. `duration_micros` is rounded so that a
/// rank's sum stays right; the attribute `duration_picos`, of our own, is exact.
std::string write_chakra(const Trace& trace, int rank);

/// The groups of all ranks as ASTRA-sim takes them: {"1": [0, 1]}.
std::string write_trace_groups(const Trace& trace);

}  // namespace lockstep
