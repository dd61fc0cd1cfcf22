#include "sim/trace/pytorch/launching_operators.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <unordered_map>

namespace lockstep {
namespace {

constexpr std::uint32_t kNoEnclosing = std::numeric_limits<std::uint32_t>::max();
/// Starts and lengths are rounded to nanoseconds each: an end may lie so far behind that around it.
constexpr std::int64_t kHostRounding = 2000;  // ps

/// An operator or, of a higher number than all of them, a call of the runtime.
class HostNesting {
 public:
  explicit HostNesting(const KinetoRecording& recording)
      : recording_(recording), inside_(recording.operators.size() + recording.runtime.size()) {
    std::vector<std::uint32_t> order(inside_.size());
    std::iota(order.begin(), order.end(), 0U);
    // What holds others comes before them where both begin at once, and calls hold nothing.
    std::ranges::sort(order, {}, [&](std::uint32_t own) {
      return std::tuple(thread(own), start(own), !is_operator(own), -end(own), own);
    });
    std::vector<std::uint32_t> open;
    for (const std::uint32_t own : order) {
      while (!open.empty() && !holds(open.back(), own)) open.pop_back();
      inside_[own] = open.empty() ? kNoEnclosing : open.back();
      if (is_operator(own)) open.push_back(own);
    }
  }
  /// The operator around it, or none.
  [[nodiscard]] std::uint32_t around_operator(std::uint32_t own) const { return inside_[own]; }
  [[nodiscard]] std::uint32_t around_call(std::uint32_t call) const {
    return inside_[recording_.operators.size() + call];
  }

 private:
  [[nodiscard]] bool is_operator(std::uint32_t own) const {
    return own < recording_.operators.size();
  }
  [[nodiscard]] const KinetoRecording::RuntimeCall& call_of(std::uint32_t own) const {
    return recording_.runtime[own - recording_.operators.size()];
  }
  [[nodiscard]] std::uint32_t thread(std::uint32_t own) const {
    return is_operator(own) ? recording_.operators[own].thread : call_of(own).thread;
  }
  [[nodiscard]] std::int64_t start(std::uint32_t own) const {
    return is_operator(own) ? recording_.operators[own].start : call_of(own).start;
  }
  [[nodiscard]] std::int64_t end(std::uint32_t own) const {
    return is_operator(own) ? recording_.operators[own].end : call_of(own).end;
  }
  [[nodiscard]] bool holds(std::uint32_t outer, std::uint32_t own) const {
    return thread(outer) == thread(own) && end(outer) > start(own) &&
           end(outer) + kHostRounding >= end(own);
  }

  const KinetoRecording& recording_;
  std::vector<std::uint32_t> inside_;
};

}  // namespace

void find_launchers(KinetoRecording& recording) {
  const HostNesting nesting(recording);
  std::unordered_map<std::int64_t, std::uint32_t> by_correlation, by_external, launchers;
  for (std::uint32_t call = 0; call < recording.runtime.size(); ++call) {
    by_correlation.try_emplace(recording.runtime[call].correlation, call);
  }
  for (std::uint32_t own = 0; own < recording.operators.size(); ++own) {
    if (!recording.operators[own].is_range) {
      by_external.try_emplace(recording.operators[own].external, own);
    }
  }
  const auto innermost = [&](const KinetoRecording::GpuEvent& event) {
    if (event.correlation != KinetoRecording::kNoId) {
      const auto call = by_correlation.find(event.correlation);
      if (call != by_correlation.end()) {
        const std::uint32_t around = nesting.around_call(call->second);
        if (around != kNoEnclosing) return around;
      }
    }
    if (event.external == KinetoRecording::kNoId) return kNoEnclosing;
    const auto own = by_external.find(event.external);
    return own == by_external.end() ? kNoEnclosing : own->second;
  };
  for (KinetoRecording::GpuEvent& event : recording.gpu) {
    std::uint32_t own = innermost(event);
    if (own == kNoEnclosing) continue;
    const auto [at, added] =
        launchers.try_emplace(own, static_cast<std::uint32_t>(recording.launchers.size()));
    event.launcher = at->second;
    if (!added) continue;
    KinetoRecording::Launcher& chain = recording.launchers.emplace_back();
    for (; own != kNoEnclosing; own = nesting.around_operator(own)) {
      const KinetoRecording::Operator& each = recording.operators[own];
      chain.push_back({.name = each.name, .shapes = each.shapes, .sequence = each.sequence});
    }
  }
}

}  // namespace lockstep
