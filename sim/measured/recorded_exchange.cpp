#include "sim/measured/recorded_exchange.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "sim/measured/kernel_marks.hpp"
#include "sim/measured/recorded_host.hpp"
#include "sim/measured/recorded_step.hpp"

namespace lockstep {
namespace {

constexpr double kFewestElements = 1 << 20;
constexpr double kExchangeSecondsPerPico = 1e-12;

/// When computing kernels run, as spans that do not touch, in order.
class ComputingSpans {
 public:
  explicit ComputingSpans(const KinetoRecording& recording) {
    for (const KinetoRecording::GpuEvent& event : recording.gpu) {  // by start
      const RecordedPart part = recorded_part(recording, event);
      if (part != RecordedPart::product && part != RecordedPart::memory) continue;
      if (!spans_.empty() && event.start <= spans_.back().second) {
        spans_.back().second = std::max(spans_.back().second, event.end);
      } else {
        spans_.emplace_back(event.start, event.end);
      }
    }
  }
  /// Picoseconds of an event beside computing.
  [[nodiscard]] std::int64_t beside(const KinetoRecording::GpuEvent& event) const {
    auto span = std::ranges::upper_bound(spans_, event.start, {},
                                         &std::pair<std::int64_t, std::int64_t>::second);
    std::int64_t out = 0;
    for (; span != spans_.end() && span->first < event.end; ++span) {
      out += std::min(event.end, span->second) - std::max(event.start, span->first);
    }
    return out;
  }

 private:
  std::vector<std::pair<std::int64_t, std::int64_t>> spans_;
};

constexpr std::int64_t kNoBackward = std::numeric_limits<std::int64_t>::max();

/// When the host began the first backward pass, on the clock of launches.
std::int64_t first_backward(const KinetoRecording& recording) {
  std::vector<char> backward;
  backward.reserve(recording.names.size());
  for (const std::string& name : recording.names) {
    backward.push_back(static_cast<char>(has_mark(name, KernelMark::backward)));
  }
  std::int64_t first = kNoBackward;
  for (const KinetoRecording::GpuEvent& event : recording.gpu) {
    if (backward[event.name] != 0) first = std::min(first, event.launch);
  }
  const std::int64_t offset = launch_offset(recording);
  for (const KinetoRecording::Operator& each : recording.operators) {
    if (!each.is_range && backward[each.name] != 0) first = std::min(first, each.start + offset);
  }
  return first;
}

enum class CallPurpose : std::uint8_t { reductions, gathers, others };

CallPurpose kind_of_call(const NcclCallText& call) {
  const std::string_view name = call_name(call);
  if (name == "all-reduce" || name == "reduce-scatter") return CallPurpose::reductions;
  return name == "all-gather" ? CallPurpose::gathers : CallPurpose::others;
}

double call_elements(const NcclCallText& call) {
  return std::max(call.in_elements.value_or(0), call.out_elements.value_or(0));
}

using GroupKey = std::pair<std::string, std::string>;
GroupKey group_key_of(const NcclCallText& call) { return {call.group, call.ranks}; }

/// A large call of one rank.
struct LargeCall {
  const KinetoRecording::GpuEvent* event;
  const NcclCallText* call;
  CallPurpose kind;
};

std::vector<LargeCall> large_calls(const KinetoRecording& recording, RecordedExchanges& out) {
  std::vector<LargeCall> calls;
  for (const KinetoRecording::GpuEvent& event : recording.gpu) {
    const NcclCallText* const call = recorded_call(recording, event);
    if (call == nullptr) continue;
    if (call->collective.empty()) {
      ++out.untold;
      continue;
    }
    if (call_elements(*call) < kFewestElements) continue;
    calls.push_back({&event, call, kind_of_call(*call)});
  }
  return calls;
}

void add_exchange(const LargeCall& call, const ComputingSpans& computing, RecordedExchange& out) {
  ++out.calls;
  out.total_s += static_cast<double>(call.event->end - call.event->start) * kExchangeSecondsPerPico;
  out.hidden_s += static_cast<double>(computing.beside(*call.event)) * kExchangeSecondsPerPico;
}

void add_rank_calls(const KinetoRecording& recording, RecordedExchanges& out) {
  const std::vector<LargeCall> calls = large_calls(recording, out);
  if (calls.empty()) return;
  const std::int64_t backward = first_backward(recording);
  if (backward == kNoBackward) return;     // of this rank: what its groups are for is not told
  std::map<GroupKey, bool> reduces_early;  // groups that reduce, and whether in forward passes
  for (const LargeCall& call : calls) {
    if (call.kind != CallPurpose::reductions) continue;
    bool& early = reduces_early[group_key_of(*call.call)];
    early = early || call.event->launch < backward;
  }
  const ComputingSpans computing(recording);
  for (const LargeCall& call : calls) {
    const auto group = reduces_early.find(group_key_of(*call.call));
    if (group == reduces_early.end()) continue;
    if (group->second) {
      add_exchange(call, computing, out.tensor);
    } else if (call.kind == CallPurpose::gathers) {
      add_exchange(call, computing, out.parameters);
    } else if (call.kind == CallPurpose::reductions) {
      add_exchange(call, computing, out.gradients);
      const double width = torch_element_size(call.call->dtype).base_units();
      if (width == 4) ++out.fp32;
      if (width == 2) ++out.half;
    }
  }
}

}  // namespace

RecordedExchanges recorded_exchanges(std::span<const KinetoRecording> recordings) {
  RecordedExchanges out;
  for (const KinetoRecording& recording : recordings) add_rank_calls(recording, out);
  return out;
}

}  // namespace lockstep
