/// What a trace of the PyTorch profiler says: GPU kernels, and the operators that launched them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// Of a kernel of NCCL, as torch.distributed writes it beside it.
struct KinetoCollective {
  std::string name;   ///< "allreduce", "_allgather_base"
  std::string dtype;  ///< "BFloat16"
  double in_elements = 0, out_elements = 0;
  int group_size = 0;
  std::string ranks;  ///< "[0, 1, 2, 3]"; long lists with "..."
  bool even = true;   ///< all parts of the same size
};

struct KinetoKernel {
  std::string name;
  double duration_us = 0;
  std::optional<std::int64_t> operator_id;  ///< of the operator that launched it
  std::optional<KinetoCollective> collective;
};

struct KinetoOperator {
  std::string name;                       ///< "aten::mm"
  std::vector<std::vector<double>> dims;  ///< of each input; empty for those that are no tensor
  std::vector<std::string> types;         ///< "c10::BFloat16"
  std::vector<std::string> values;        ///< of inputs that are no tensor: "True"
};

struct KinetoTrace {
  std::vector<KinetoKernel> kernels;                 ///< copies too, in the order of the file
  std::map<std::int64_t, KinetoOperator> operators;  ///< with recorded shapes
  std::string device;                                ///< the first card, as its driver names it
};

/// Reads the text of a Chrome trace. What is no complete GPU event or operator is passed over, as
/// the format asks. Throws InputError for a text that is no JSON, and for one without any GPU
/// kernel.
KinetoTrace parse_kineto(const std::string& file, std::string_view text);

}  // namespace lockstep
