/// Reads execution traces of PyTorch (torch.profiler.ExecutionTraceObserver): the operators of one
/// rank with their tensors, without times and kernels.
///
/// Source of the format: github.com/pytorch/pytorch,
/// torch/csrc/profiler/standalone/execution_trace_observer.cpp, schemas 1.0.1 (lists of inputs
/// beside "input_shapes" and "input_types", "parent") to 1.1.1-chakra.0.0.4 ("inputs" with
/// "values", "shapes" and "types", "ctrl_deps", "attrs"). A tensor is
/// [tensor, storage, offset, elements, bytes of an element, device].
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/units.hpp"
#include "sim/trace/pytorch/kineto_call.hpp"

namespace lockstep {

struct ExecutionTrace {
  static constexpr std::uint32_t kNoCall = std::numeric_limits<std::uint32_t>::max();

  /// A call of an operator.
  struct Operator {
    std::uint64_t id = 0, parent = 0;
    std::uint64_t record_function = 0;  ///< "rf_id": that of Kineto's "Record function id"
    std::string name;
    std::vector<std::uint64_t> reads, writes;  ///< storages on the GPU, each once, ascending
    Bytes bytes;                               ///< of its tensors on the GPU, in and out
    std::optional<Flops> flops;                ///< of products
    std::uint32_t call = kNoCall;              ///< in `calls`: a record_param_comms
  };

  std::string file;
  std::vector<Operator> operators;  ///< by id
  std::vector<NcclCallText> calls;
  std::map<std::string, std::vector<int>> groups;  ///< of "process_group:init"; empty: all ranks

  /// Null where there is none.
  [[nodiscard]] const Operator* find(std::uint64_t id) const;
};

/// Throws InputError with the node's number for a text that is no such trace.
ExecutionTrace read_execution_trace(const std::string& file, std::string_view text);

/// Whether a text that begins like this is one.
bool is_execution_trace(std::string_view begin);

}  // namespace lockstep
