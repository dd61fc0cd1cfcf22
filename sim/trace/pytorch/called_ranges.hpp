/// What a kernel of NCCL calls, where the kernel does not say (PyTorch before 2.2):
/// torch.distributed opens a range around the launch that is named after the call,
/// "nccl:all_reduce", with the shapes of its tensors where the profiler was asked for them
/// (record_shapes=True). Source of the names: torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp,
/// profilingTitle.
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

class CalledRanges {
 public:
  /// Takes the host's event if it is such a range. Times are microseconds, as in the file.
  void add(const nlohmann::json& event, const nlohmann::json& args);
  [[nodiscard]] bool empty() const { return ranges_.empty(); }

  /// The call of a kernel that was launched then, by that thread, among all of `world` ranks: the
  /// range does not say whose process group it is of. Nothing where no range with shapes was open,
  /// or one of another kind than the kernel's name.
  [[nodiscard]] std::optional<NcclCallText> call_of(std::string_view kernel, double launch,
                                                    std::int64_t thread, int world);

 private:
  struct Range {
    double start = 0, end = 0;
    NcclCallText call;
  };
  void sort();

  std::unordered_map<std::int64_t, std::vector<Range>> ranges_;  ///< by thread
  bool sorted_ = true;
};

}  // namespace lockstep
