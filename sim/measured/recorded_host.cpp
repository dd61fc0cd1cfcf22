#include "sim/measured/recorded_host.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "sim/measured/kernel_kinds.hpp"

namespace lockstep {
namespace {

/// CUDA holds 1,024 launches of a context before the next one waits; near that it may have waited.
constexpr std::ptrdiff_t kFullQueue = 1000;
constexpr std::size_t kFewestIntervals = 20;  // of which a mean says something
constexpr std::size_t kLongestPart = 50;      // one in so many is left out: the longest
constexpr double kHostSecondsPerPico = 1e-12;

/// Launches a kernel that is neither a copy nor NCCL's.
bool is_computing(const KinetoRecording& recording, const KinetoRecording::GpuEvent& event) {
  if (event.copies || event.communicates()) return false;
  const KernelKind kind = kernel_kind(recording.names[event.name]);
  return kind != KernelKind::collective && kind != KernelKind::copy;
}

/// A call that launched computing kernels, in the order of time.
struct LaunchCall {
  std::int64_t launch = 0;  ///< when, as its kernels have it
  bool after_wait = false;  ///< the host waited for the GPU between the call before it and this one
};

/// Counts them too. Times are those of kernels: the host's own calls of before a step's start are
/// all at its start (cut_to_step()), where only their order is left.
std::vector<LaunchCall> launch_calls(const KinetoRecording& recording, RecordedHost& out) {
  struct Launched {
    std::size_t kernels = 0;
    std::int64_t launch = 0;
  };
  std::unordered_map<std::int64_t, Launched> launched;  // by correlation
  for (const KinetoRecording::GpuEvent& event : recording.gpu) {
    if (event.correlation == KinetoRecording::kNoId || !is_computing(recording, event)) continue;
    Launched& of_call = launched[event.correlation];
    ++of_call.kernels;
    of_call.launch = event.launch;
  }
  std::vector<LaunchCall> calls;
  bool waited = false;
  for (const KinetoRecording::RuntimeCall& call : recording.runtime) {
    waited = waited || call.what != KinetoRecording::Call::other;
    const auto found = launched.find(call.correlation);
    if (found == launched.end()) continue;
    calls.push_back({found->second.launch, waited});
    waited = false;
    ++out.launches;
    out.kernels += found->second.kernels;
    if (recording.names[call.name].find("GraphLaunch") == std::string::npos) continue;
    ++out.graphs;
    out.graph_kernels += found->second.kernels;
  }
  return calls;
}

/// How many kernels were launched and had not ended at a time.
class LaunchQueue {
 public:
  explicit LaunchQueue(const KinetoRecording& recording) {
    const std::int64_t offset = launch_offset(recording);
    for (const KinetoRecording::GpuEvent& event : recording.gpu) {
      launches_.push_back(event.launch);
      ends_.push_back(event.end + offset);
    }
    std::ranges::sort(launches_);
    std::ranges::sort(ends_);
  }
  [[nodiscard]] bool is_full(std::int64_t time) const {
    const auto begun = std::ranges::upper_bound(launches_, time) - launches_.begin();
    const auto done = std::ranges::upper_bound(ends_, time) - ends_.begin();
    return begun - done >= kFullQueue;
  }

 private:
  std::vector<std::int64_t> launches_, ends_;
};

/// Picoseconds between launches of a host that ran freely.
void add_intervals(const KinetoRecording& recording, const std::vector<LaunchCall>& calls,
                   std::vector<std::int64_t>& out) {
  const LaunchQueue queue(recording);
  for (std::size_t i = 1; i < calls.size(); ++i) {
    if (calls[i].after_wait || queue.is_full(calls[i - 1].launch)) continue;
    const std::int64_t interval = calls[i].launch - calls[i - 1].launch;
    if (interval > 0) out.push_back(interval);
  }
}

}  // namespace

std::int64_t launch_offset(const KinetoRecording& recording) {
  std::unordered_map<std::int64_t, std::int64_t> starts;  // of calls, by correlation
  for (const KinetoRecording::RuntimeCall& call : recording.runtime) {
    if (call.correlation != KinetoRecording::kNoId) starts.emplace(call.correlation, call.start);
  }
  std::int64_t offset = 0;
  for (const KinetoRecording::GpuEvent& event : recording.gpu) {
    const auto call = starts.find(event.correlation);
    if (call != starts.end()) offset = std::max(offset, event.launch - call->second);
  }
  return offset;
}

RecordedHost recorded_host(std::span<const KinetoRecording> recordings) {
  RecordedHost out;
  std::vector<std::int64_t> intervals;
  for (const KinetoRecording& recording : recordings) {
    add_intervals(recording, launch_calls(recording, out), intervals);
  }
  if (intervals.size() < kFewestIntervals) return out;
  std::ranges::sort(intervals);
  intervals.resize(intervals.size() - (intervals.size() + kLongestPart - 1) / kLongestPart);
  double sum = 0;
  for (const std::int64_t interval : intervals) sum += static_cast<double>(interval);
  out.intervals = intervals.size();
  out.interval_s = sum / static_cast<double>(intervals.size()) * kHostSecondsPerPico;
  return out;
}

}  // namespace lockstep
