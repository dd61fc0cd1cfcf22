/// What a kernel of NCCL calls, where the kernel does not say (PyTorch before 2.2):
/// torch.distributed opens a range around the launch that is named after the call,
/// "nccl:all_reduce", with the shapes of its tensors where the profiler was asked for them
/// (record_shapes=True). Around that is the record of the call itself ("record_param_comms"), which
/// since PyTorch 2.2 says all that kernels should: those of ROCm do not always repeat it. Source of
/// the names: torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp, profilingTitle and
/// RECORD_PARAM_COMMS_DATA.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "sim/trace/pytorch/kineto_call.hpp"

namespace lockstep {

/// What torch.distributed writes of a call beside a kernel or its record.
NcclCallText nccl_call_text(const nlohmann::json& args);

class CalledRanges {
 public:
  /// Takes the host's event if it is such a range, or the record of a call. Times are microseconds,
  /// as in the file.
  void add(const nlohmann::json& event, const nlohmann::json& args);
  [[nodiscard]] bool empty() const { return ranges_.empty(); }

  /// The call of a kernel that was launched then, by that thread: as its record says it, else as
  /// the range around it does, among all of `world` ranks, since a range does not say whose process
  /// group it is of (nothing where `world` is below 2). Nothing where neither was open, or of
  /// another kind than the kernel's name.
  [[nodiscard]] std::optional<NcclCallText> call_of(std::string_view kernel, double launch,
                                                    std::int64_t thread, int world);

 private:
  struct Range {
    double start = 0, end = 0;
    bool tells_all = false;  ///< the record of a call
    NcclCallText call;
  };
  void sort();

  std::unordered_map<std::int64_t, std::vector<Range>> ranges_;  ///< by thread
  bool sorted_ = true;
};

}  // namespace lockstep
