#include "sim/trace/pytorch/kernel_links.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <unordered_map>
#include <utility>

namespace lockstep {
namespace {

constexpr int kFarthestAncestor = 4;  // c10d::allreduce_ of nccl:all_reduce is two up

class KernelLinker {
 public:
  KernelLinker(const ExecutionTrace& trace, const KinetoRecording& recording)
      : trace_(trace), recording_(recording), by_thread_(recording.threads) {
    for (std::uint32_t i = 0; i < recording_.operators.size(); ++i) {
      const KinetoRecording::Operator& own = recording_.operators[i];
      by_thread_[own.thread].push_back(i);
      if (own.external == KinetoRecording::kNoId) continue;
      const auto [at, added] = by_external_.try_emplace(own.external, i);
      if (!added && recording_.operators[at->second].is_range) at->second = i;
    }
    for (std::uint32_t i = 0; i < recording_.runtime.size(); ++i) {
      by_correlation_.try_emplace(recording_.runtime[i].correlation, i);
    }
    for (std::uint32_t i = 0; i < trace_.operators.size(); ++i) {
      const std::uint64_t rf = trace_.operators[i].record_function;
      if (rf != 0) by_function_.try_emplace(rf, i);
    }
  }

  KernelLinks link() {
    std::vector<bool> launches(trace_.operators.size());
    for (const KinetoRecording::GpuEvent& event : recording_.gpu) {
      const std::uint32_t call = find(by_correlation_, event.correlation);
      const std::uint32_t node = node_of(event, call);
      out_.call.push_back(event.correlation == KinetoRecording::kNoId ? kNone : call);
      out_.node.push_back(node);
      if (node == kNone) {
        ++out_.unlinked;
        continue;
      }
      const ExecutionTrace::Operator* at = &trace_.operators[node];
      for (int up = 0; at != nullptr && up <= kFarthestAncestor; ++up) {
        launches[static_cast<std::size_t>(at - trace_.operators.data())] = true;
        at = at->parent == at->id ? nullptr : trace_.find(at->parent);
      }
    }
    if (out_.unlinked == recording_.gpu.size()) fail_unlinked();
    count_missing(launches);
    return std::move(out_);
  }

 private:
  static constexpr std::uint32_t kNone = KernelLinks::kNone;

  template <class Index, class Key>
  static std::uint32_t find(const Index& index, Key key) {
    const auto at = index.find(key);
    return at == index.end() ? kNone : at->second;
  }

  [[nodiscard]] std::uint32_t node_of(const KinetoRecording::GpuEvent& event,
                                      std::uint32_t call) const {
    std::uint32_t own = find(by_external_, event.external);
    if (own == kNone && call != kNone) own = innermost(recording_.runtime[call]);
    if (own == kNone) return kNone;
    return find(by_function_,
                static_cast<std::uint64_t>(recording_.operators[own].record_function));
  }

  /// Of the operators of its thread, the one that began last and has not ended.
  [[nodiscard]] std::uint32_t innermost(const KinetoRecording::RuntimeCall& call) const {
    const std::vector<std::uint32_t>& own = by_thread_[call.thread];
    const auto start = [&](std::uint32_t i) { return recording_.operators[i].start; };
    auto at = std::ranges::upper_bound(own, call.start, {}, start);
    constexpr int kFarthest = 256;  // operators that ended before the launch
    for (int step = 0; at != own.begin() && step < kFarthest; ++step) {
      --at;
      if (recording_.operators[*at].end >= call.end) return *at;
    }
    return kNone;
  }

  [[noreturn]] void fail_unlinked() const {
    const bool without = std::ranges::none_of(
        recording_.operators,
        [](const KinetoRecording::Operator& own) { return own.record_function != 0; });
    fail_trace(trace_.file,
               fmt::format("no operator of the {} kernels in {}{}", recording_.gpu.size(),
                           recording_.file, without ? ", which has no \"Record function id\"" : ""),
               "both recorded over the same steps: torch.profiler.profile(execution_trace_observer="
               "ExecutionTraceObserver().register_callback(FILE))");
  }

  void count_missing(const std::vector<bool>& launches) {
    for (std::size_t i = 0; i < launches.size(); ++i) {
      const ExecutionTrace::Operator& own = trace_.operators[i];
      const bool runs = own.flops.has_value() || own.call != ExecutionTrace::kNoCall;
      if (launches[i] || !runs || own.bytes == Bytes{}) continue;
      if (out_.missing++ == 0) out_.first_missing = node_text(own.id, own.name);
    }
  }

  const ExecutionTrace& trace_;
  const KinetoRecording& recording_;
  std::vector<std::vector<std::uint32_t>> by_thread_;
  std::unordered_map<std::int64_t, std::uint32_t> by_external_, by_correlation_;
  std::unordered_map<std::uint64_t, std::uint32_t> by_function_;
  KernelLinks out_;
};

}  // namespace

KernelLinks link_kernels(const ExecutionTrace& trace, const KinetoRecording& recording) {
  return KernelLinker(trace, recording).link();
}

}  // namespace lockstep
