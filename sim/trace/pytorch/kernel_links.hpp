/// Which operator of an execution trace launched which kernel of the Kineto trace beside it.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "sim/trace/pytorch/execution_trace.hpp"
#include "sim/trace/pytorch/kineto_recording.hpp"

namespace lockstep {

struct KernelLinks {
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

  std::vector<std::uint32_t> call;  ///< by event of the GPU: in KinetoRecording::runtime, or kNone
  std::vector<std::uint32_t> node;  ///< the same: in ExecutionTrace::operators, or kNone
  std::size_t unlinked = 0;         ///< events of the GPU without an operator
  std::size_t missing = 0;          ///< products and collectives of the GPU without a kernel
  std::string first_missing;        ///< "node 12 (aten::mm)"
};

/// As chakra_trace_link does (github.com/mlcommons/chakra, src/trace_link/trace_linker.py): a
/// kernel and its launch have the same "correlation"; its operator is that with its "External id",
/// else the innermost around the launch; an operator's "Record function id" is the node's rf_id.
/// Throws InputError where no kernel has an operator.
KernelLinks link_kernels(const ExecutionTrace& trace, const KinetoRecording& recording);

}  // namespace lockstep
