/// What a kernel of NCCL calls, as torch.distributed writes it beside kernels (Kineto) and
/// operators (execution traces). Source of the names: torch/csrc/distributed/c10d/
/// ProcessGroupNCCL.cpp, RECORD_PARAM_COMMS_DATA, and torch/csrc/profiler/util.cpp, saveNcclMeta.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "sim/trace/trace_builder.hpp"

namespace lockstep {

/// As it is written; what is not there is empty.
struct NcclCallText {
  std::string collective;  ///< "allreduce", "_allgather_base", "send"
  std::string dtype;       ///< "BFloat16"
  std::string group;       ///< name of the process group
  std::string ranks;       ///< "[0, 1, 2, 3]"; long lists with "..."
  std::optional<double> in_elements, out_elements, group_size;
  std::optional<double> rank_start, rank_stride;  ///< of the group's ranks, instead of the list
  std::optional<double> source, destination;      ///< ranks, of messages
};

/// Whether a kernel exchanges data with other cards, by its name: NCCL's and RCCL's, and those of
/// libraries that say nothing of their calls (one-shot all-reduces of vLLM, SGLang, TensorRT-LLM
/// and PyTorch's symmetric memory, DeepEP, NVSHMEM, MSCCL++, Transformer Engine's userbuffers),
/// whose length holds the wait for others too.
bool is_communication_kernel(std::string_view name);

struct NcclCall {
  TraceNodeKind kind = TraceNodeKind::collective;  ///< or send, receive
  CollectiveOp op = CollectiveOp::all_reduce;
  Bytes size;  ///< of a message, or a collective's payload
  int peer = 0;
  RankTrace::Group group;
};

/// The size of an element of a type of PyTorch, by the name that C++ or Python gives it, whatever
/// its case ("BFloat16", "c10::BFloat16"); 0 for one that is not known.
Bytes torch_element_size(std::string_view dtype);

/// Reads one. Throws InputError that begins with the kernel's name where its collective, size, type
/// or ranks are missing or unknown.
NcclCall read_nccl_call(const std::string& file, std::string_view kernel, const NcclCallText& text);
/// Makes a node of `trace`, its last one, what the kernel calls. One that does not say keeps its
/// recorded length (TraceNodeKind::exchange) and is counted (RankTrace::unknown): PyTorch
/// before 2.2 says nothing, later ones nothing of calls that began before the recording.
void add_call(const std::string& kernel, const NcclCallText& text, RankTrace& trace);
/// Makes a node of `trace` the call.
void set_call(RankTrace::Node& node, NcclCall call, RankTrace& trace);

}  // namespace lockstep
